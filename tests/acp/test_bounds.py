"""What an agent may pile up here has a bound in bytes, and what happens at the bound is said."""

from __future__ import annotations

import itertools
from pathlib import Path

from support.gateway_process import Start, agent
from support.rpc_peer import is_update
from support.session_client import notice

MEGABYTE = 1024 * 1024


async def test_updates_that_run_ahead_are_held_up_to_a_bound_and_the_loss_is_told(
    dragoman: Start, workspace: Path
) -> None:
    flags = ("--early-updates", "40", "--early-size", str(MEGABYTE))
    gateway = await dragoman(agents={"scripted": agent(*flags)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    told = await notice(gateway, session, "of its updates are lost")
    texts = [update for update in gateway.of(session) if "early" in str(update.get("content"))]
    assert 10 <= len(texts) < 17
    assert f"{40 - len(texts)} of its updates" in told
    assert (await gateway.prompt(session, "say fine")).texts == ["fine"]


async def test_many_updates_that_run_ahead_are_held_up_to_a_number(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman(agents={"scripted": agent("--early-updates", "1200")})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    assert "200 of its updates" in await notice(gateway, session, "are lost")
    assert len([m for m in gateway.received if is_update(session)(m)]) == 1001


async def test_terminals_that_are_never_released_have_a_bound(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman()
    await gateway.initialize(clientCapabilities={"terminal": True})
    ids = itertools.count(1)
    gateway.on("terminal/create", lambda params: {"terminalId": f"t{next(ids)}"})
    gateway.on("terminal/output", {"output": "", "truncated": False})
    gateway.on("terminal/release", {})
    session = await gateway.new_session(workspace)
    create = 'request-nowait terminal/create {"sessionId":"{sid}","command":"x"}\n' * 1000
    over = 'request terminal/create {"sessionId":"{sid}","command":"x"}'
    turn = await gateway.prompt(session, create + over)
    assert turn.report("request")["error"]["data"]["reason"] == "too_many_terminals"
    assert next(ids) == 1001
    release = 'request terminal/release {"sessionId":"{sid}","terminalId":"t1"}'
    turn = await gateway.prompt(session, f"{release}\n{over}")
    assert turn.reports("request")[1]["result"] == {"terminalId": "t1002"}
