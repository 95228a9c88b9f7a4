"""An agent that asks thousands of questions at once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from dragoman.wire import limits
from support.clients.sample_answers import CANCELLED
from support.gateway_process import GatewayProcess


async def test_a_flood_of_questions_is_bounded_and_starves_no_other_session(
    dragoman: Any, workspace: Path
) -> None:
    gateway: GatewayProcess = await dragoman()
    await gateway.initialize()
    flooded, other = await gateway.new_session(workspace), await gateway.new_session(workspace)
    turn = gateway.start_prompt(flooded, "permission-flood 10000")
    await gateway.next_message(lambda message: message.get("method") == "session/request_permission")
    answered = await asyncio.wait_for(gateway.prompt(other, "say still here"), 20)
    assert answered.stop_reason == "end_turn"
    assert (await asyncio.wait_for(turn, 30)).report("permission") == {"result": CANCELLED}
    asked = [one for one in gateway.received if one.get("method") == "session/request_permission"]
    assert 0 < len(asked) <= limits.OPEN_QUESTIONS
