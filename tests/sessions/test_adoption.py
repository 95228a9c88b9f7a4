"""The first load of a session that only its agent knows, by several clients at once: its history is journaled once."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from support.agents.agent_log import AgentLog
from support.gateway_process import GatewayProcess, Start, Table, agent
from support.rpc_peer import RpcFailure, RpcPeer
from support.session_client import Loaded, Watch, listed, load, notice, notices, setup, turn_end
from support.store.journal_reader import read_journal
from support.waiting import until

CAPS = '{"loadSession": true, "sessionCapabilities": {"list": {}}}'
OLD = [{"sessionId": "old", "cwd": "/tmp", "title": "Old"}]
CWD = Path("/tmp")
COUNT = 300
WHOLE = [f"replay {number}" for number in range(COUNT)]

SMALL = (
    sys.executable,
    "-c",
    "import runpy, sys; from dragoman.wire import limits; limits.HELD_REPLAY_BYTES = 1000; "
    "sys.argv = sys.argv[3:]; runpy.run_module('dragoman', run_name='__main__')",
)
"""Runs a gateway that holds no replay for long."""

Find = Callable[..., Awaitable[str]]
"""The id of the agent's own session; more flags for the agent of all gateways that follow."""


@pytest.fixture
def agents(heard: AgentLog) -> Table:
    return {"scripted": agent()}


@pytest.fixture
def find(dragoman: Start, heard: AgentLog, agents: Table) -> Find:
    async def find_it(*flags: str) -> str:
        listing = ("--caps", CAPS, "--list", json.dumps(OLD), "--load-replay", str(COUNT))
        agents["scripted"] = agent(*listing, *heard.flags, *flags)
        lister = await dragoman(agents=agents)
        await lister.initialize()
        (found,) = await listed(lister)
        lister.leave()
        await lister.wait_exit()
        return str(found["sessionId"])

    return find_it


def begin(peer: RpcPeer, session: str) -> asyncio.Task[Loaded]:
    return asyncio.ensure_future(load(peer, session, CWD))


def agent_processes(*gateways: GatewayProcess) -> list[int]:
    found = {pid: line for gateway in gateways for pid, line in gateway.processes().items()}
    return [pid for pid, line in found.items() if "scripted_agent" in line]


def texts(home: Path, session: str) -> list[str]:
    """What the agent said, as it is stored."""
    said = [event.body["params"]["update"] for event in read_journal(home, session) if event.tag == "U"]
    return [update["content"]["text"] for update in said]


@pytest.mark.parametrize("processes", [1, 2])
async def test_two_first_loads_at_once_journal_the_history_once(
    dragoman: Start, watch: Watch, home: Path, find: Find, agents: Table, heard: AgentLog, tmp_path: Path,
    processes: int,
) -> None:  # fmt: skip
    go = tmp_path / "go"
    session = await find("--load-run", f"wait-file {go}")
    gateways = [await dragoman("acp", agents=agents) for _ in range(processes)]
    first, second = await watch(gateways[0]), await watch(gateways[-1])
    loads = [begin(first, session)]
    await heard.until_method("session/load")
    loads.append(begin(second, session))
    if processes == 2:
        await gateways[1].logged("agent started")  # which is the other process
    go.touch()
    assert [loaded.texts for loaded in await asyncio.gather(*loads)] == [WHOLE, WHOLE]
    assert texts(home, session) == WHOLE
    assert len(heard.params("session/load")) == 1
    assert len(agent_processes(*gateways)) == 1
    assert (await second.prompt(session, "say on")).texts == ["on"]


async def test_many_first_loads_in_the_same_moment_start_one_agent(
    dragoman: Start, watch: Watch, home: Path, find: Find, agents: Table, heard: AgentLog
) -> None:
    session = await find()
    gateway = await dragoman("acp", agents=agents)
    peers = [await watch(gateway) for _ in range(5)]
    loads = await asyncio.gather(*(begin(peer, session) for peer in peers))
    assert [loaded.texts for loaded in loads] == [WHOLE] * len(peers)
    assert texts(home, session) == WHOLE
    assert len(heard.params("session/load")) == len(agent_processes(gateway)) == 1


@pytest.mark.parametrize("how", ["cancelled", "gone"])
async def test_when_the_first_loses_interest_the_second_gets_all_of_it(
    dragoman: Start, watch: Watch, home: Path, find: Find, agents: Table, heard: AgentLog, tmp_path: Path,
    how: str,
) -> None:  # fmt: skip
    go = tmp_path / "go"
    session = await find("--load-run", f"wait-file {go}")
    gateway = await dragoman("acp", agents=agents)
    first, second = await watch(gateway), await watch(gateway)
    request = first.start_request("session/load", setup(session, CWD))
    await heard.until_method("session/load")
    waiting = begin(second, session)
    await second.request("session/list", {})  # answered after the load was taken up
    if how == "cancelled":
        first.notify("$/cancel_request", {"requestId": request})
        assert (await first.response(request))["error"]["code"] == -32800
    else:
        await first.close()
        await gateway.logged("client left")
    go.touch()
    assert (await waiting).texts == WHOLE
    assert texts(home, session) == WHOLE
    assert len(heard.params("session/load")) == len(agent_processes(gateway)) == 1


async def test_when_the_first_fails_half_way_the_second_does_it_anew(
    dragoman: Start, watch: Watch, home: Path, find: Find, agents: Table, heard: AgentLog, tmp_path: Path
) -> None:
    go, crashed = tmp_path / "go", tmp_path / "crashed"
    session = await find("--load-run", f"wait-file {go}\ncrash-once {crashed}")
    gateway = await dragoman("acp", agents=agents)
    first, second = await watch(gateway), await watch(gateway)
    loads = [begin(first, session)]
    await heard.until_method("session/load")
    loads.append(begin(second, session))
    await second.request("session/list", {})
    go.touch()
    with pytest.raises(RpcFailure):
        await loads[0]
    assert (await loads[1]).texts == WHOLE
    assert texts(home, session) == WHOLE
    assert (await load(first, session, CWD)).texts == WHOLE
    assert len(agent_processes(gateway)) == 1


async def test_when_the_process_of_the_first_is_killed_the_second_does_it_in_its_own(
    dragoman: Start, watch: Watch, home: Path, find: Find, agents: Table, heard: AgentLog, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    session = await find("--load-run", f"wait-file {go}")
    one, other = [await dragoman("acp", agents=agents) for _ in range(2)]
    first, second = await watch(one), await watch(other)
    first.start_request("session/load", setup(session, CWD))
    await heard.until_method("session/load")
    waiting = begin(second, session)
    await other.logged("agent started")  # which is the other process
    await one.kill()
    go.touch()
    assert (await waiting).texts == WHOLE
    assert texts(home, session) == WHOLE
    assert len(agent_processes(one, other)) == 1


@pytest.mark.parametrize("how", ["failed", "cancelled", "killed"])
async def test_a_first_load_that_came_to_nothing_leaves_nothing_behind(
    dragoman: Start, watch: Watch, home: Path, find: Find, agents: Table, heard: AgentLog, tmp_path: Path,
    how: str,
) -> None:  # fmt: skip
    go, crashed = tmp_path / "go", tmp_path / "crashed"
    session = await find(
        "--load-run", f"wait-file {go}\n" + (f"crash-once {crashed}" if how == "failed" else "")
    )
    gateway = await dragoman("acp", agents=agents)
    client = await watch(gateway)
    request = client.start_request("session/load", setup(session, CWD))
    await heard.until_method("session/load")
    if how == "failed":
        go.touch()
        assert "error" in await client.response(request)
    elif how == "cancelled":
        client.notify("$/cancel_request", {"requestId": request})
        assert (await client.response(request))["error"]["code"] == -32800
    else:
        await gateway.kill()
        gateway = await dragoman("acp", agents=agents)
        client = await watch(gateway)
    await until(lambda: not agent_processes(gateway))
    go.touch()
    assert (await load(client, session, CWD)).texts == WHOLE
    assert texts(home, session) == WHOLE


async def test_two_first_loads_without_a_journal_share_one_agent(
    dragoman: Start, heard: AgentLog, workspace: Path
) -> None:
    flags = ("--caps", CAPS, "--list", json.dumps(OLD), "--load-replay", "3")
    agents = {"scripted": agent(*flags, *heard.flags)}
    gateway = await dragoman("acp", "scripted", "--port", "0", agents=agents, sessions={"journal": False})
    port = int((await gateway.logged(r"Listening on 127.0.0.1:(\d+)"))[1])
    first, second = [await gateway.connect(port) for _ in range(2)]
    for peer in (first, second):
        await peer.initialize()
        await peer.new_session(workspace)  # takes the agent that was started ahead
    session = next(each["sessionId"] for each in await listed(first) if each.get("title") == "Old")
    running = agent_processes(gateway)
    loads = await asyncio.gather(begin(first, session), begin(second, session))
    wanted = ["replay 0", "replay 1", "replay 2"]
    assert [loaded.texts for loaded in loads] == [wanted, wanted]
    await first.prompt(session, "say once")
    await turn_end(second, session)
    assert len(agent_processes(gateway)) == len(running) + 1


@pytest.mark.parametrize("cut", [False, True])
async def test_a_replay_too_large_to_hold_is_journaled_as_it_comes_and_said_to_be_cut_off(
    dragoman: Start, watch: Watch, home: Path, find: Find, agents: Table, tmp_path: Path, cut: bool
) -> None:
    go, crashed = tmp_path / "go", tmp_path / "crashed"
    session = await find("--load-run", f"wait-file {go}\ncrash-once {crashed}\nsay the end")
    if not cut:
        crashed.touch()
    gateway = await dragoman("acp", agents=agents, prefix=SMALL)
    client = await watch(gateway)
    request = client.start_request("session/load", setup(session, CWD))
    await until(lambda: texts(home, session) == WHOLE)
    go.touch()
    assert ("error" in await client.response(request)) == cut
    loaded = await load(client, session, CWD)
    assert loaded.texts == (WHOLE if cut else [*WHOLE, "the end"])
    if cut:
        assert "not complete" in await notice(client, session, "cut off")
    await client.prompt(session, "say on")
    assert len(notices(client, session)) == cut
