"""Daemons that agents and commands leave behind, which hide from their parent: none outlives the gateway."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.agents.builtin_process import calls, shown
from support.gateway_process import GatewayProcess, Start, agent
from support.sandboxes import unprivileged_user
from support.waiting import runs, until, until_gone

DAEMONS = Path(__file__).parents[1] / "support" / "processes" / "hidden_daemons.py"
KINDS = ("ssh-agent", "empty", "overwritten", "unlimited")

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc"),
    pytest.mark.skipif(not unprivileged_user.possible(), reason="needs setpriv to become an ordinary user"),
    pytest.mark.skipif(shutil.which("ssh-agent") is None, reason="needs ssh-agent"),
]

Begin = Callable[..., Awaitable[GatewayProcess]]


@pytest.fixture
def daemons() -> Iterator[list[int]]:
    """What the test left behind; a test that fails leaves nothing running either."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        if runs(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
async def begin(dragoman: Start, home: Path, workspace: Path) -> Begin:
    """Start `dragoman acp scripted` as an ordinary user."""
    unprivileged_user.hand_over(home, workspace)

    async def begin(*arguments: str, **sections: Any) -> GatewayProcess:
        words = arguments or ("acp", "scripted")
        sections.setdefault("agents", {"scripted": agent(serve_terminal=True)})
        prefix = ["env", *unprivileged_user.prefix()]
        gateway = await dragoman(*words, prefix=prefix, **sections)
        await gateway.initialize()
        return gateway

    return begin


def command(kind: str) -> str:
    return f"{sys.executable} -S -E {DAEMONS} {kind}"


async def leave(
    gateway: GatewayProcess, session: str, kinds: tuple[str, ...], daemons: list[int]
) -> list[int]:
    """Let the session's agent leave one daemon of each kind behind."""
    turn = await gateway.prompt(session, "\n".join(f"sh {command(kind)}" for kind in kinds))
    left = [int(report["out"]) for report in turn.reports("sh")]
    daemons += left
    assert all(runs(pid) for pid in left)
    return left


def watchers(gateway: GatewayProcess) -> list[int]:
    return [pid for pid, line in gateway.processes().items() if "watcher.py" in line]


async def test_daemons_end_with_a_gateway_whose_client_leaves(
    begin: Begin, workspace: Path, daemons: list[int]
) -> None:
    gateway = await begin()
    await leave(gateway, await gateway.new_session(workspace), KINDS, daemons)
    gateway.leave()
    await gateway.wait_exit()
    assert [pid for pid in daemons if runs(pid)] == []


async def test_daemons_end_with_a_gateway_that_is_killed(
    begin: Begin, workspace: Path, daemons: list[int]
) -> None:
    gateway = await begin()
    await leave(gateway, await gateway.new_session(workspace), KINDS, daemons)
    await gateway.kill()
    await until_gone(daemons)


async def test_daemons_end_with_their_agent_and_those_of_another_agent_do_not(
    begin: Begin, workspace: Path, daemons: list[int]
) -> None:
    gateway = await begin()
    first, second = await gateway.new_session(workspace), await gateway.new_session(workspace)
    findable = ("ssh-agent", "empty", "overwritten")
    ending = await leave(gateway, first, findable, daemons)
    staying = await leave(gateway, second, findable, daemons)
    await gateway.request("session/close", {"sessionId": first})
    await until_gone(ending)
    assert all(runs(pid) for pid in staying)


async def test_daemons_end_with_an_agent_that_dies_by_itself(
    begin: Begin, workspace: Path, daemons: list[int]
) -> None:
    gateway = await begin()
    session = await gateway.new_session(workspace)
    await leave(gateway, session, KINDS, daemons)
    assert (await gateway.prompt(session, "kill KILL")).error is not None
    await until_gone(daemons)


async def test_daemons_of_a_terminal_end_with_it(begin: Begin, workspace: Path, daemons: list[int]) -> None:
    gateway = await begin()
    session = await gateway.new_session(workspace)
    for kind in KINDS[:3]:
        turn = await gateway.prompt(session, f"terminal {command(kind)}")
        daemons.append(int(turn.report("terminal/output")["result"]["output"]))
    await until_gone(daemons)  # the agent released its terminals


async def test_daemons_of_a_command_of_the_builtin_agent_end_with_it(
    begin: Begin, workspace: Path, daemons: list[int]
) -> None:
    gateway = await begin("acp", "builtin", agents={"builtin": {"kind": "builtin"}})
    gateway.on("session/request_permission", {"outcome": {"outcome": "selected", "optionId": "allow_once"}})
    session = await gateway.new_session(workspace)
    for kind in KINDS:
        (ran,) = calls(await gateway.prompt(session, f"/run {command(kind)}"))
        (pid,) = re.findall(r"^\d+$", shown(ran), re.MULTILINE)
        daemons.append(int(pid))
    await until_gone(daemons)


async def leave_at_work(gateway: GatewayProcess, source: str, workspace: Path, daemons: list[int]) -> None:
    """Let a command leave daemons behind and run on: of the built-in agent, or in a terminal of the gateway."""
    kinds, pids = KINDS[:3], workspace / "pids"
    line = "; ".join(f"{command(kind)} >> {pids}" for kind in kinds) + "; exec sleep 1000"
    (workspace / "work").write_text(line)
    gateway.on("session/request_permission", {"outcome": {"outcome": "selected", "optionId": "allow_once"}})
    session = await gateway.new_session(workspace)
    word = {"builtin": "/run", "terminal": "terminal"}[source]
    gateway.start_prompt(session, f"{word} sh {workspace / 'work'}")
    await until(lambda: pids.exists() and len(pids.read_text().split()) == len(kinds))
    daemons += map(int, pids.read_text().split())
    assert all(runs(pid) for pid in daemons)


SOURCES: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "builtin": (("acp", "builtin"), {"agents": {"builtin": {"kind": "builtin"}}}),
    "terminal": ((), {}),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("end", ["orderly", "killed", "all killed"])
async def test_daemons_of_a_command_that_runs_end_with_the_gateway(
    begin: Begin, workspace: Path, daemons: list[int], source: str, end: str
) -> None:
    words, sections = SOURCES[source]
    gateway = await begin(*words, **sections)
    await leave_at_work(gateway, source, workspace, daemons)
    if end == "orderly":
        gateway.leave()
        await gateway.wait_exit()
    elif end == "killed":
        await gateway.kill()
    else:
        await kill_all(gateway)
        assert all(runs(pid) for pid in daemons)
        await begin(*words, **sections)
    await until_gone(daemons)


async def kill_all(gateway: GatewayProcess) -> None:
    """The gateway, its watcher, and the built-in agent with its own; none hears of the others' end."""
    ours = ("watcher.py", "dragoman.builtin")
    below = [pid for pid, line in gateway.processes().items() if any(word in line for word in ours)]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in (gateway.process.pid, *below):
            os.kill(pid, number)
    await gateway.wait_exit()


async def test_daemons_end_when_the_watcher_is_killed_and_then_the_gateway(
    begin: Begin, workspace: Path, daemons: list[int]
) -> None:
    gateway = await begin()
    await leave(gateway, await gateway.new_session(workspace), KINDS[:3], daemons)
    (first,) = watchers(gateway)
    os.kill(first, signal.SIGKILL)
    await until(lambda: set(watchers(gateway)) - {first})
    await gateway.kill()
    await until_gone(daemons)


async def test_the_next_gateway_ends_what_is_left_when_everything_of_ours_was_killed(
    begin: Begin, workspace: Path, daemons: list[int]
) -> None:
    first, other = await begin(), await begin()
    await leave(first, await first.new_session(workspace), KINDS[:3], daemons)
    left = list(daemons)
    session = await other.new_session(workspace)
    staying = await leave(other, session, KINDS[:3], daemons)
    await kill_all(first)
    await begin()
    await until_gone(left)
    await first.no_process_left()
    assert all(runs(pid) for pid in staying)
    assert (await other.prompt(session, "say still here")).texts == ["still here"]
