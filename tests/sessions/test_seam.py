"""Attaching at any moment of a running turn: replay, then the live stream, without a gap or a double."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.clients.joining_clients import JoiningClients, release, stepped
from support.gateway_process import GatewayProcess, Start, Table
from support.rpc_peer import Message
from support.session_client import SEQ, Watch, conversation, load, resumable_agent, turn_end

STEPS = 12
AGENTS: Table = {"scripted": resumable_agent()}


@pytest.fixture
def steps(tmp_path: Path) -> Path:
    folder = tmp_path / "steps"
    folder.mkdir()
    return folder


async def test_a_client_may_attach_at_any_moment_of_a_turn(
    gateway: GatewayProcess, watch: Watch, workspace: Path, steps: Path
) -> None:
    session = await gateway.new_session(workspace)
    clients = JoiningClients(gateway, session, workspace, watch)
    turn = gateway.start_prompt(session, stepped(steps, STEPS))
    for step in range(STEPS):
        await gateway.text(session, f"step {step}")
        await clients.over_the_socket(**(SEQ if step % 3 == 0 else {}))
        release(steps, step)
    assert (await turn).stop_reason == "end_turn"
    assert len(await clients.check()) == 2 + 4 * STEPS + 2


async def test_a_client_may_attach_while_the_turn_waits(
    gateway: GatewayProcess, watch: Watch, workspace: Path, steps: Path
) -> None:
    session = await gateway.new_session(workspace)
    clients = JoiningClients(gateway, session, workspace, watch)
    turn = gateway.start_prompt(session, stepped(steps, 2))
    for step in range(2):
        await gateway.text(session, f"step {step}")
        await clients.over_the_socket()
        await clients.clients[-1].text(session, f"step {step}")
        release(steps, step)
    assert (await turn).stop_reason == "end_turn"
    await clients.check()


async def test_a_client_of_another_process_may_attach_at_any_moment_of_a_turn(
    gateway: GatewayProcess, dragoman: Start, watch: Watch, workspace: Path, steps: Path
) -> None:
    session = await gateway.new_session(workspace)
    clients = JoiningClients(gateway, session, workspace, watch)
    turn = gateway.start_prompt(session, stepped(steps, 4))
    for step in range(4):
        await gateway.text(session, f"step {step}")
        if step:
            await clients.from_another_process(dragoman, AGENTS)
        release(steps, step)
    assert (await turn).stop_reason == "end_turn"
    await clients.check()


async def test_clients_may_attach_during_a_flood(
    gateway: GatewayProcess, watch: Watch, workspace: Path
) -> None:
    session = await gateway.new_session(workspace)
    clients = JoiningClients(gateway, session, workspace, watch)
    turn = gateway.start_prompt(session, "flood 6000 100\nsay done")
    for number in range(0, 6000, 750):

        def so_far(_: Message, number: int = number) -> bool:
            return len(gateway.received) >= number

        await gateway.next_message(so_far)
        await clients.over_the_socket(**(SEQ if number % 500 else {}))
    assert (await turn).stop_reason == "end_turn"
    assert len(await clients.check()) == 6002 + 2


async def test_a_client_that_loads_twice_sees_it_twice_and_no_more(
    gateway: GatewayProcess, watch: Watch, workspace: Path, steps: Path
) -> None:
    session = await gateway.new_session(workspace)
    turn = gateway.start_prompt(session, stepped(steps, 2))
    await gateway.text(session, "step 0")
    other = await watch(gateway)
    await load(other, session, workspace)
    release(steps, 0)
    await gateway.text(session, "step 1")
    start = len(other.of(session))
    await load(other, session, workspace)
    release(steps, 1)
    await turn
    await turn_end(other, session)
    late = await watch(gateway)
    whole = conversation((await load(late, session, workspace)).replay)
    seen = conversation(other.of(session))
    second = len(seen) - len(whole)
    assert seen[second:] == whole
    assert seen[:second] == whole[:second]
    assert second >= start
