"""What clients of a process see that does not have the session, when the process that has it dies: all of it, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.gateway_process import GatewayProcess, Start
from support.rpc_peer import RpcPeer, is_update, text_of
from support.session_client import SEQ, Watch, load, resumable_agent, resume, setup

COUNT = 6000
FLOOD = f"flood {COUNT} 80"


@pytest.fixture
async def owner(dragoman: Start) -> GatewayProcess:
    gateway = await dragoman(agents={"scripted": resumable_agent()})
    await gateway.initialize()
    return gateway


@pytest.fixture
async def others(dragoman: Start, owner: GatewayProcess) -> list[GatewayProcess]:
    """Two more processes on the same store."""
    started = [await dragoman(agents={"scripted": resumable_agent()}) for _ in range(2)]
    for gateway in started:
        await gateway.initialize()
    return started


def numbers(peer: RpcPeer, session: str) -> list[int]:
    shown = [m["params"] for m in peer.received if is_update(session)(m)]
    facts = [(params.get("_meta") or {}).get("dragoman") or {} for params in shown]
    return [fact["seq"] for fact in facts if "seq" in fact]


def flooded(peer: RpcPeer, session: str) -> list[int]:
    """The numbers that the flood's chunks have in their text."""
    texts = (text_of(update) for update in peer.of(session))
    return [int(text.partition(" ")[0]) for text in texts if text.rstrip(".").strip().isdigit()]


async def test_a_client_that_resumes_elsewhere_does_not_double_events_for_its_neighbours(
    owner: GatewayProcess, others: list[GatewayProcess], watch: Watch, workspace: Path
) -> None:
    session = await owner.new_session(workspace)
    await owner.prompt(session, "say one\nsay two\nsay three")
    neighbour = await watch(others[0], **SEQ)
    await load(neighbour, session, workspace)
    turn = owner.start_prompt(session, FLOOD)
    for _ in range(4):
        back = await watch(others[0], **SEQ)
        await resume(back, session, workspace, after=2)
        await back.next_message(is_update(session))
    await turn
    await owner.prompt(session, "say settled")
    for peer in (neighbour, back):
        await peer.text(session, "settled")
        found = numbers(peer, session)
        assert found == sorted(set(found))
        assert flooded(peer, session) == list(range(COUNT))


@pytest.mark.parametrize("rivals", [1, 2])
async def test_a_client_whose_resume_was_under_way_when_the_owner_died_gets_the_rest(
    owner: GatewayProcess, others: list[GatewayProcess], watch: Watch, workspace: Path, rivals: int
) -> None:
    session = await owner.new_session(workspace)
    await owner.prompt(session, FLOOD)
    neighbour = await watch(others[0], **SEQ)
    await load(neighbour, session, workspace)
    watchers = [neighbour]
    if rivals == 2:  # both processes want the session now
        watchers.append(await watch(others[1], **SEQ))
        await load(watchers[-1], session, workspace)
    back = await watch(others[0], **SEQ)
    more = {"_meta": {"dragoman": {"afterSeq": 1}}}
    await back.request("session/resume", {**setup(session, workspace), **more})
    await back.next_message(is_update(session, "agent_message_chunk"))
    await owner.kill()
    await neighbour.prompt(session, "say settled")
    for peer in (*watchers, back):
        await peer.text(session, "settled")
        found = numbers(peer, session)
        assert found == sorted(set(found))
        assert flooded(peer, session) == list(range(COUNT))
