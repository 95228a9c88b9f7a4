"""An agent that asks thousands of questions at once."""

from __future__ import annotations

import asyncio
import json
import time
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


async def test_a_flood_that_rules_decide_starves_no_other_session(dragoman: Any, workspace: Path) -> None:
    """Thousands of different shell lines at once: each is read and decided, and other sessions go on meanwhile."""
    rules = [{"name": "listing", "decision": "allow", "command": [["ls"], ["echo"]]}]
    rules += [
        {"name": f"no {n}", "decision": "deny", "paths": [f"{{workspace}}/**/x{n}/**"]} for n in range(100)
    ]
    gateway: GatewayProcess = await dragoman(policy={"rules": rules})
    await gateway.initialize()
    flooded, other = await gateway.new_session(workspace), await gateway.new_session(workspace)
    await gateway.prompt(
        flooded, 'permission {"toolCall": {"toolCallId": "a", "rawInput": {"command": "ls"}}}'
    )
    line = {"rawInput": {"command": "ls src/{} && echo {}"}}
    turn = gateway.start_prompt(flooded, f"permission-flood 3000 {json.dumps(line)}")
    gateway.on("session/request_permission", CANCELLED)
    taken: list[float] = []
    while not turn.done() and len(taken) < 50:
        start = time.monotonic()
        assert (await asyncio.wait_for(gateway.prompt(other, "say still here"), 20)).stop_reason == "end_turn"
        taken.append(time.monotonic() - start)
    assert sorted(taken)[len(taken) // 2] < 5
    told = (await asyncio.wait_for(turn, 60)).report("permission")
    assert told["result"]["outcome"]["outcome"] == "selected"


async def test_a_command_of_a_megabyte_is_asked_about(dragoman: Any, workspace: Path) -> None:
    gateway: GatewayProcess = await dragoman(
        policy={"rules": [{"decision": "allow", "command": [["echo"]]}], "remember": "gateway"}
    )
    await gateway.initialize()
    session, other = await gateway.new_session(workspace), await gateway.new_session(workspace)
    tool = {"toolCallId": "big", "kind": "execute", "rawInput": {"command": "echo " + "a" * 1_000_000}}
    turn = gateway.start_prompt(session, f"permission {json.dumps({'toolCall': tool})}")
    asked = await gateway.next_message(lambda message: message.get("method") == "session/request_permission")
    assert [one["optionId"] for one in asked["params"]["options"]] == ["dragoman:once", "dragoman:reject"]
    assert (await asyncio.wait_for(gateway.prompt(other, "say still here"), 20)).stop_reason == "end_turn"
    gateway.reply(asked, CANCELLED)
    assert (await turn).report("permission") == {"result": CANCELLED}
