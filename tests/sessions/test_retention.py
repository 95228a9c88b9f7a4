"""What is old goes if the settings say so, and whoever looks sees that it went."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.gateway_process import GatewayProcess, Start, Table
from support.rpc_peer import RpcFailure
from support.session_client import SEQ, Watch, listed, load, notice, notices, resumable_agent, resume

AGENTS: Table = {"scripted": resumable_agent()}
BEGINNING = "The beginning of this conversation was removed"


async def begun(dragoman: Start, workspace: Path) -> str:
    """A session with one turn, of a gateway that has ended."""
    gateway = await started(dragoman)
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "say before")
    gateway.leave()
    await gateway.wait_exit()
    return session


async def started(dragoman: Start, **sessions: float) -> GatewayProcess:
    gateway = await dragoman(agents=AGENTS, sessions=sessions)
    await gateway.initialize()
    return gateway


async def test_a_turn_that_takes_too_long_is_cancelled_and_told(dragoman: Start, workspace: Path) -> None:
    gateway = await started(dragoman, prompt_timeout=0.2)
    session = await gateway.new_session(workspace)
    turn = await gateway.prompt(session, "sleep-until-cancel")
    assert turn.stop_reason == "cancelled"
    assert "sessions.prompt_timeout" in await notice(gateway, session, "longer than 0.2 s")
    assert (await gateway.prompt(session, "say quick")).texts == ["quick"]


async def test_a_session_that_nobody_uses_is_closed_and_told(dragoman: Start, workspace: Path) -> None:
    gateway = await started(dragoman, expire_after=0.2)
    session = await gateway.new_session(workspace)
    assert "sessions.expire_after" in await notice(gateway, session, "not used for 0.2 s")
    await gateway.logged("agent ended")
    refused = (await gateway.prompt(session, "say no")).error
    assert refused and refused.code == -32002
    assert session in [each["sessionId"] for each in await listed(gateway)]


async def test_a_journal_that_was_removed_is_told_to_whoever_loads_it(
    dragoman: Start, watch: Watch, workspace: Path
) -> None:
    session = await begun(dragoman, workspace)
    gateway = await started(dragoman, expire_after=30, retain_bytes=1)
    await gateway.logged("session removed by sessions.retain_bytes")
    assert session in [each["sessionId"] for each in await listed(gateway)]
    assert (await load(gateway, session, workspace)).texts == []
    assert BEGINNING in await notice(gateway, session, "sessions.retain_bytes")
    other = await watch(gateway)
    await load(other, session, workspace)
    await notice(other, session, BEGINNING)
    await gateway.prompt(session, "say on")
    assert len([each for each in notices(gateway, session) if BEGINNING in each]) == 1


async def test_an_old_session_that_was_removed_is_not_listed_any_more(
    dragoman: Start, workspace: Path
) -> None:
    session = await begun(dragoman, workspace)
    gateway = await started(dragoman, expire_after=30, retain_days=1e-9)
    await gateway.logged("session removed by sessions.retain_days")
    assert await listed(gateway) == []
    with pytest.raises(RpcFailure) as caught:
        await load(gateway, session, workspace)
    assert caught.value.code == -32002 and "deleted" in caught.value.message


async def test_whoever_resumes_before_the_removed_beginning_is_told(
    dragoman: Start, watch: Watch, workspace: Path
) -> None:
    session = await begun(dragoman, workspace)
    gateway = await started(dragoman, expire_after=30, retain_bytes=1)
    await gateway.logged("session removed by sessions.retain_bytes")
    result = await resume(gateway, session, workspace, after=1)
    facts = result["_meta"]["dragoman"]
    assert 2 < facts["firstSeq"] <= facts["seq"] + 1
    assert f"Events 2 to {facts['firstSeq'] - 1} of this conversation" in await notice(
        gateway, session, "not kept any more"
    )
    assert (await gateway.prompt(session, "say on")).texts == ["on"]
    late = await watch(gateway, **SEQ)
    again = await resume(late, session, workspace, after=facts["firstSeq"] - 1)  # it has all that was removed
    assert "firstSeq" not in again["_meta"]["dragoman"]
    await late.text(session, "on")
    assert notices(late, session) == []
    other = await dragoman(agents=AGENTS)  # of another process
    await other.initialize()
    await resume(other, session, workspace, after=1)
    assert "Events 2 to " in await notice(other, session, "not kept any more")
    assert notices(gateway, session) == notices(gateway, session)[:1]
