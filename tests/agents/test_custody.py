from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop

from dragoman.agents.custody import Custody, CustodyError, Ward, table
from dragoman.agents.custody.lifeline import WATCHER
from dragoman.agents.custody.table import Process, Snapshot
from dragoman.agents.custody.tree import MARKER_VARIABLE, Step, Tree, escalate
from dragoman.agents.process import AgentProcess
from support.clients.link_recorder import LinkRecorder
from support.waiting import runs, until, until_gone

PROCESSES = Path(__file__).parents[1] / "support" / "processes"
MISBEHAVING_CHILD = str(PROCESSES / "misbehaving_child.py")
ALL_KINDS = ("mark", "stubborn", "detached", "relaunch", "relaunch_stubborn")

pytestmark = pytest.mark.filterwarnings("ignore:Overriding the .event_loop_policy. fixture")


@pytest.fixture(params=["asyncio", "uvloop"])
def event_loop_policy(request: pytest.FixtureRequest) -> asyncio.AbstractEventLoopPolicy:
    policies: dict[str, type[asyncio.AbstractEventLoopPolicy]]
    policies = {"asyncio": asyncio.DefaultEventLoopPolicy, "uvloop": uvloop.EventLoopPolicy}
    return policies[request.param]()


@pytest.fixture
async def custody() -> AsyncIterator[Custody]:
    custody = Custody()
    yield custody
    await custody.close()


class CustodyProcess:
    """A gateway in a process of its own, as `custody_program.py` reports it."""

    def __init__(self, process: asyncio.subprocess.Process, told: dict[str, Any]) -> None:
        self.process = process
        self.watcher: int = told["watcher"]
        self.agents: list[int] = told["agents"]

    def children(self) -> set[int]:
        pid = self.process.pid
        return {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


@asynccontextmanager
async def custody_process(*behaviours: str) -> AsyncIterator[CustodyProcess]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(PROCESSES / "custody_program.py"),
        *behaviours,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(20):
            yield CustodyProcess(process, json.loads(await process.stdout.readline()))
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def ignores(pid: int, number: signal.Signals) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    mask = next(line.split()[1] for line in status.splitlines() if line.startswith("SigIgn"))
    return bool(int(mask, 16) & (1 << (number - 1)))


async def test_nothing_outlives_a_gateway_that_is_killed() -> None:
    async with custody_process(*ALL_KINDS) as gateway:
        assert len(gateway.agents) == 8
        gateway.process.kill()
        await until_gone([*gateway.agents, gateway.watcher])


async def test_a_signal_to_the_editors_group_ends_the_agents_but_not_their_watcher() -> None:
    async with custody_process("detached", "mark") as gateway:
        await until(lambda: ignores(gateway.watcher, signal.SIGTERM))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(gateway.watcher, number)
        os.killpg(gateway.process.pid, signal.SIGINT)
        assert await gateway.process.wait() == -signal.SIGINT
        await until_gone([*gateway.agents, gateway.watcher])


async def test_a_watcher_that_was_killed_is_replaced_and_knows_everything() -> None:
    async with custody_process("detached", "mark") as gateway:
        before = gateway.children()
        os.kill(gateway.watcher, signal.SIGKILL)
        await until(lambda: gateway.children() - before and not runs(gateway.watcher))
        (second,) = gateway.children() - before
        gateway.process.kill()
        await until_gone([*gateway.agents, second])


async def test_a_watcher_that_does_not_read_is_replaced(custody: Custody) -> None:
    custody.start()
    first = custody.watcher_pid
    assert first is not None
    os.kill(first, signal.SIGSTOP)
    while custody.watcher_pid == first:
        custody.release(custody.admit())
    await until_gone([first])
    assert custody.watcher_pid != first


async def test_agents_get_nothing_but_their_three_pipes(custody: Custody) -> None:
    link = LinkRecorder()
    agents = [
        await AgentProcess.spawn(
            [sys.executable, MISBEHAVING_CHILD, "mark"], handler=link, custody=custody, env=os.environ
        )
        for _ in range(3)
    ]
    await link.message(2)
    # What this test run itself was started with may be handed down to any child.
    inherited = {name for name in os.listdir("/proc/self/fd") if int(name) > 2 and inheritable(int(name))}
    for agent in agents:
        assert set(os.listdir(f"/proc/{agent.pid}/fd")) - inherited == {"0", "1", "2"}
    await asyncio.gather(*(agent.stop() for agent in agents))


def inheritable(descriptor: int) -> bool:
    try:
        return os.get_inheritable(descriptor)
    except OSError:
        return False


async def test_a_watcher_without_charges_leaves_with_the_gateway_at_once(custody: Custody) -> None:
    custody.release(custody.admit())
    watcher = custody.watcher_pid
    assert watcher is not None
    async with asyncio.timeout(1.5):
        await custody.close()
    assert not runs(watcher)
    assert custody.watcher_pid is None
    with pytest.raises(CustodyError, match="shutting down"):
        custody.admit()


async def test_closing_custody_ends_agents_that_nobody_stopped(custody: Custody) -> None:
    link = LinkRecorder()
    await AgentProcess.spawn(
        [sys.executable, MISBEHAVING_CHILD, "detached"], handler=link, custody=custody, env=os.environ
    )
    pids = (await link.message())["pids"]
    await custody.close()
    await until_gone(pids, timeout=1)
    await link.closed()


async def test_orphans_of_an_agent_that_died_by_itself_are_ended(custody: Custody) -> None:
    link = LinkRecorder()
    agent = await AgentProcess.spawn(
        [sys.executable, MISBEHAVING_CHILD, "detached"], handler=link, custody=custody, env=os.environ
    )
    pids = (await link.message())["pids"]
    os.kill(agent.pid, signal.SIGKILL)
    assert await link.closed() == "agent was killed by SIGKILL"
    await agent.wait_closed()
    await until_gone(pids, timeout=1)


async def test_an_agent_whose_start_was_never_reported_is_ended_too() -> None:
    ward = Ward()
    watcher = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", str(WATCHER), stdin=subprocess.PIPE
    )
    child = await asyncio.create_subprocess_exec(
        sys.executable, MISBEHAVING_CHILD, "stubborn", env=ward.mark(os.environ), stdin=subprocess.DEVNULL
    )
    assert watcher.stdin is not None
    watcher.stdin.write(f"{ward.line}\n".encode())
    watcher.stdin.close()  # as if the gateway died right after the fork
    async with asyncio.timeout(10):
        assert await child.wait() in (-signal.SIGKILL, -signal.SIGTERM)
        assert await watcher.wait() == 0


async def test_a_gateway_below_another_keeps_the_marker_of_that_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARKER_VARIABLE, "outer")
    ward = Ward()
    assert ward.mark({"A": "b"}) == {"A": "b", MARKER_VARIABLE: f"outer,{ward.marker}"}


class Machine:
    """A made-up process table whose processes die of the signals named."""

    def __init__(self, *processes: Process, environs: dict[int, bytes] | None = None) -> None:
        self.processes = {process.pid: process for process in processes}
        self.environs = environs or {}
        self.sent: list[tuple[int, int]] = []

    def snapshot(self) -> Snapshot:
        return Snapshot(dict(self.processes), lambda pid: self.environs.get(pid, b""))

    def send(self, process: Process, number: int) -> None:
        self.sent.append((process.pid, number))
        if number == signal.SIGKILL:
            self.processes.pop(process.pid)


def pids(tree: Tree, machine: Machine) -> set[int]:
    return {process.pid for process in tree.members(machine.snapshot())}


def test_a_tree_has_the_group_the_session_the_descendants_and_who_carries_the_marker() -> None:
    machine = Machine(
        Process(100, 50, 100, 100, "t1"),
        Process(101, 1, 100, 100, "t2"),  # an orphan in the group
        Process(102, 1, 102, 100, "t2"),  # one in the session, with a group of its own
        Process(103, 101, 103, 103, "t2"),  # a child with a session of its own
        Process(104, 1, 104, 104, "t2"),  # nothing but the marker
        Process(105, 104, 105, 105, "t2"),  # its child
        Process(50, 1, 50, 50, "t0"),  # the gateway
        Process(200, 50, 200, 200, "t1"),  # another agent
        environs={104: b"DRAGOMAN_CUSTODY=outer,m4rk", 200: b"DRAGOMAN_CUSTODY=other"},
    )
    tree = Tree("m4rk")
    tree.root(100, "t1")
    assert pids(tree, machine) == {100, 101, 102, 103, 104, 105}


def test_whoever_got_a_reused_pid_is_left_alone() -> None:
    machine = Machine(Process(100, 50, 100, 100, "t1"), Process(101, 100, 101, 101, "t2"))
    tree = Tree("m4rk")
    tree.root(100, "t1")
    assert pids(tree, machine) == {100, 101}
    stranger, child = Process(100, 1, 100, 100, "t9"), Process(101, 100, 100, 100, "t9")
    machine.processes = {100: stranger, 101: child}
    assert pids(tree, machine) == set()


def test_orphans_are_remembered_after_their_parent_is_gone() -> None:
    machine = Machine(Process(100, 50, 100, 100, "t1"), Process(101, 100, 101, 101, "t2"))
    tree = Tree("m4rk")
    tree.root(100, "t1")
    assert pids(tree, machine) == {100, 101}
    machine.processes = {101: Process(101, 1, 101, 101, "t2")}
    assert pids(tree, machine) == {101}


def test_signals_escalate_and_reach_each_member_once() -> None:
    machine = Machine(Process(100, 50, 100, 100, "t1"), Process(101, 100, 101, 101, "t2"))
    tree = Tree("m4rk")
    tree.root(100, "t1")
    for _ in escalate([tree], machine, (Step(signal.SIGTERM, 0.001), Step(signal.SIGKILL, 1))):
        pass
    assert sorted(machine.sent) == sorted(
        (pid, number) for pid in (100, 101) for number in (signal.SIGTERM, signal.SIGKILL)
    )
    assert not tree.remaining


def test_what_ps_prints_is_understood() -> None:
    output = subprocess.run(table.PS, capture_output=True, check=True, text=True).stdout
    mine = table.parse_ps(output)[os.getpid()]
    assert (mine.pid, mine.ppid, mine.pgid) == (os.getpid(), os.getppid(), os.getpgrp())
    zombie = "    7     1     7 Z    Mon Nov  2 10:00:00 2026"
    living = "    8     1     7 Ss+  Mon Nov  2 10:00:00 2026"
    assert table.parse_ps(f"{zombie}\n{living}\n") == {8: Process(8, 1, 7, 7, "Mon Nov  2 10:00:00 2026")}
