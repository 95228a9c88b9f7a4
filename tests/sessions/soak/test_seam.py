"""Attaching in the middle of a turn, hundreds of times."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from support.clients.joining_clients import JoiningClients, release, stepped
from support.clients.random_clients import RandomClients
from support.gateway_process import GatewayProcess, Start
from support.rpc_peer import Message
from support.session_client import SEQ, Watch, resumable_agent

pytestmark = pytest.mark.soak

STEPS = 100
FLOOD = 10_000


async def test_a_client_may_attach_at_each_of_a_hundred_moments(
    gateway: GatewayProcess, watch: Watch, workspace: Path, tmp_path: Path
) -> None:
    session = await gateway.new_session(workspace)
    clients = JoiningClients(gateway, session, workspace, watch)
    turn = gateway.start_prompt(session, stepped(tmp_path, STEPS))
    for step in range(STEPS):
        await gateway.text(session, f"step {step}")
        await clients.over_the_socket(**(SEQ if step % 3 == 0 else {}))
        release(tmp_path, step)
    assert (await turn).stop_reason == "end_turn"
    await clients.check()


async def test_clients_of_other_processes_may_attach_at_each_of_a_dozen_moments(
    gateway: GatewayProcess, dragoman: Start, watch: Watch, workspace: Path, tmp_path: Path
) -> None:
    session = await gateway.new_session(workspace)
    clients = JoiningClients(gateway, session, workspace, watch)
    turn = gateway.start_prompt(session, stepped(tmp_path, 12))
    for step in range(12):
        await gateway.text(session, f"step {step}")
        await clients.from_another_process(dragoman, {"scripted": resumable_agent()})
        release(tmp_path, step)
    assert (await turn).stop_reason == "end_turn"
    await clients.check()


@pytest.mark.parametrize("seed", range(20))
async def test_clients_may_come_go_and_come_back_in_three_processes(
    dragoman: Start, watch: Watch, workspace: Path, seed: int
) -> None:
    gateways = [await dragoman(agents={"scripted": resumable_agent()}) for _ in range(3)]
    for gateway in gateways:
        await gateway.initialize()
    clients = RandomClients(gateways, await gateways[0].new_session(workspace), workspace, watch, seed)
    await clients.live(moments=60)
    await clients.kill_owner()
    await clients.live(moments=40)
    await clients.check()


@pytest.mark.parametrize("seed", range(10))
async def test_clients_may_attach_at_random_moments_of_a_flood(
    gateway: GatewayProcess, watch: Watch, workspace: Path, seed: int
) -> None:
    chance = random.Random(seed)
    session = await gateway.new_session(workspace)
    clients = JoiningClients(gateway, session, workspace, watch)
    turn = gateway.start_prompt(session, f"flood {FLOOD} 120")
    for moment in sorted(chance.sample(range(FLOOD), 30)):

        def so_far(_: Message, moment: int = moment) -> bool:
            return len(gateway.received) >= moment

        await gateway.next_message(so_far)
        await clients.over_the_socket(**(SEQ if chance.random() < 0.3 else {}))
    assert (await turn).stop_reason == "end_turn"
    assert len(await clients.check()) == FLOOD + 1 + 2
