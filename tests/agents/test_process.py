from __future__ import annotations

import asyncio
import errno
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import uvloop

from dragoman.agents.custody import Custody
from dragoman.agents.environment import agent_environment
from dragoman.agents.process import AgentProcess, ExitStatus
from dragoman.agents.program import SpawnError
from dragoman.wire import limits
from dragoman.wire.framing import FramingError
from support.clients.link_recorder import LinkRecorder
from support.waiting import until, until_gone

MISBEHAVING_CHILD = str(Path(__file__).parents[1] / "support" / "processes" / "misbehaving_child.py")

pytestmark = pytest.mark.filterwarnings("ignore:Overriding the .event_loop_policy. fixture")

Start = Callable[..., Awaitable[AgentProcess]]


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


@pytest.fixture
async def link() -> LinkRecorder:
    return LinkRecorder()


@pytest.fixture
async def start(custody: Custody, link: LinkRecorder) -> Start:
    async def start(behaviour: str, **options: object) -> AgentProcess:
        settings: dict[str, object] = {"env": os.environ, "cwd": None, "handler": link, **options}
        command = [sys.executable, MISBEHAVING_CHILD, behaviour]
        return await AgentProcess.spawn(command, custody=custody, **settings)  # type: ignore[arg-type]

    return start


async def test_messages_go_through_in_both_directions(start: Start, link: LinkRecorder) -> None:
    agent = await start("echo")
    for number in range(100):
        agent.send(b'{"id":%d}' % number)
    assert await link.message(99) == {"id": 99}
    await agent.stop()
    assert link.closings == [None]
    assert agent.exit == ExitStatus(0, None)


async def test_messages_that_come_together_are_handed_on_together(start: Start, link: LinkRecorder) -> None:
    await start("burst")
    await link.closed()
    assert len(link.frames) == 1000
    assert link.reads < 10


async def test_what_was_sent_before_a_close_still_arrives(start: Start, link: LinkRecorder) -> None:
    agent = await start("echo")
    agent.send(b'"' + b"x" * 3_000_000 + b'"')
    agent.close()
    agent.send(b'"too late"')
    assert len(await link.message()) == 3_000_000
    await agent.wait_closed()
    assert len(link.frames) == 1


async def test_the_agent_has_the_given_environment_folder_and_a_marker(
    start: Start, link: LinkRecorder, tmp_path: Path
) -> None:
    agent = await start("mark", cwd=str(tmp_path))
    words = await link.message()
    assert words["cwd"] == str(tmp_path)
    assert len(words["marker"]) == 32
    assert words["pids"] == [agent.pid] == [os.getpgid(agent.pid)] == [os.getsid(agent.pid)]
    await agent.stop()


async def test_everything_written_before_the_exit_is_delivered_before_the_closing(
    start: Start, link: LinkRecorder
) -> None:
    agent = await start("big_lines")
    assert await link.closed() == "agent exited with code 0"
    assert [len(frame) for frame in link.frames[:4] if isinstance(frame, bytes)] == [5_000_012] * 4
    assert await link.message(4) == {"done": True}
    await agent.wait_closed()


async def test_lines_above_the_limit_become_errors_in_their_place(start: Start, link: LinkRecorder) -> None:
    await start("big_lines", max_message_bytes=1_000_000)
    await link.closed()
    assert [isinstance(frame, FramingError) for frame in link.frames] == [True, True, True, True, False]


async def test_a_paused_link_reads_no_further_until_it_is_resumed(start: Start, link: LinkRecorder) -> None:
    agent = await start("echo")
    agent.pause()
    agent.pause()
    agent.send(b"1")
    agent.send(b'"' + b"x" * 4_000_000 + b'"')
    await link.told_writable(1)  # its stdout is full, so it stopped reading its stdin
    assert (link.writable, link.frames) == ([False], [])
    assert agent.backlog > limits.WRITE_HIGH_WATER
    agent.resume()
    agent.resume()
    assert len(await link.message(1)) == 4_000_000
    assert link.writable == [False, True]
    assert agent.backlog == 0
    await agent.stop()


async def test_what_a_paused_agent_wrote_before_it_died_is_not_lost(start: Start, link: LinkRecorder) -> None:
    agent = await start("signalled")
    agent.pause()
    assert await link.closed() == "agent was killed by SIGKILL"
    assert await link.message() == {"last": "words"}


async def test_death_by_a_signal_is_told_with_the_last_words(start: Start, link: LinkRecorder) -> None:
    agent = await start("signalled")
    assert await link.closed() == "agent was killed by SIGKILL"
    assert agent.exit == ExitStatus(None, "SIGKILL")
    await agent.wait_closed()
    assert agent.stderr_tail() == "about to fall"


async def test_an_exit_code_is_told(start: Start, link: LinkRecorder) -> None:
    agent = await start("fails")
    assert await link.closed() == "agent exited with code 7"
    assert agent.exit == ExitStatus(7, None)


async def test_writing_to_a_dead_agent_is_no_error(start: Start, link: LinkRecorder) -> None:
    agent = await start("fails")
    while not link.closings:
        agent.send(b"x" * 100_000)
        await asyncio.sleep(0)
    agent.send(b"x")
    await agent.wait_closed()
    assert link.closings == ["agent exited with code 7"]
    assert agent.backlog == 0


async def test_a_flood_on_stderr_blocks_nobody_and_only_its_end_is_kept(
    start: Start, link: LinkRecorder
) -> None:
    agent = await start("flood_stderr")
    assert await link.message() == {"done": True}
    await until(lambda: "line 19999" in agent.stderr_tail())
    lines = agent.stderr_tail().splitlines()
    assert len(lines) == limits.STDERR_TAIL_LINES
    assert lines[-1] == "line 19999 " + "x" * 1000
    await agent.stop()


async def test_a_stderr_line_without_end_is_cut(start: Start, link: LinkRecorder) -> None:
    agent = await start("endless_stderr_line")
    await link.message()
    await until(lambda: len(agent.stderr_tail()) == limits.STDERR_LINE_BYTES)
    await agent.stop()


async def test_an_agent_that_ignores_everything_is_killed(start: Start, link: LinkRecorder) -> None:
    agent = await start("stubborn")
    await link.message()
    await asyncio.gather(agent.stop(patience=0.1), agent.stop())
    assert agent.exit == ExitStatus(None, "SIGKILL")
    assert link.closings == [None]


async def test_a_grandchild_that_detached_itself_ends_with_the_agent(
    start: Start, link: LinkRecorder
) -> None:
    agent = await start("detached")
    pids = (await link.message())["pids"]
    await agent.stop()
    await until_gone(pids, timeout=1)


async def test_a_child_without_environment_and_in_its_own_session_ends_with_the_agent(
    start: Start, link: LinkRecorder
) -> None:
    agent = await start("bare")
    pids = (await link.message())["pids"]
    await agent.stop()
    await until_gone(pids, timeout=1)


@pytest.mark.parametrize("behaviour", ["relaunch", "relaunch_stubborn"])
async def test_an_agent_that_started_itself_again_ends_in_both_shapes(
    start: Start, link: LinkRecorder, behaviour: str
) -> None:
    agent = await start(behaviour)
    pids = (await link.message())["pids"]
    await agent.stop(patience=0.2)
    await until_gone(pids, timeout=1)


async def test_the_link_closes_though_a_grandchild_holds_stdout(start: Start, link: LinkRecorder) -> None:
    agent = await start("holds_stdout")
    pids = (await link.message())["pids"]
    assert await link.closed() == "agent exited with code 3"
    await agent.wait_closed()
    await until_gone(pids, timeout=1)


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [("closes_stdout", "agent closed its stdout"), ("closes_stdin", "agent closed its stdin")],
)
async def test_an_agent_that_cuts_one_of_its_streams_is_ended(
    start: Start, link: LinkRecorder, behaviour: str, reason: str
) -> None:
    agent = await start(behaviour)
    pids = (await link.message())["pids"]
    agent.send(b"anybody there?")
    assert await link.closed() in (reason, "agent was killed by SIGTERM")
    await agent.wait_closed()
    await until_gone(pids, timeout=1)
    assert len(link.closings) == 1


async def test_an_agent_that_never_reads_its_stdin_can_be_stopped(start: Start, link: LinkRecorder) -> None:
    agent = await start("never_reads")
    await link.message()
    agent.send(b"x" * 10_000_000)
    await link.told_writable(1)
    await agent.stop(patience=0.1)
    assert agent.exit == ExitStatus(None, "SIGTERM")
    assert link.closings == [None]


async def test_fifty_agents_leave_no_descriptor_and_no_child(custody: Custody, start: Start) -> None:
    custody.start()
    agent = await start("echo")
    await agent.stop()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        agents = [await start("echo", handler=LinkRecorder()) for _ in range(10)]
        await asyncio.gather(*(agent.stop() for agent in agents))
    await until(lambda: len(os.listdir("/proc/self/fd")) <= before)


async def spawn(command: list[str], custody: Custody, link: LinkRecorder, **options: str) -> AgentProcess:
    return await AgentProcess.spawn(
        command, handler=link, custody=custody, env=os.environ, cwd=options.get("cwd")
    )


def script(path: Path, content: bytes, mode: int = 0o755) -> str:
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


async def test_a_program_that_cannot_be_started_is_told_in_a_sentence(
    custody: Custody, link: LinkRecorder, tmp_path: Path
) -> None:
    plain = script(tmp_path / "plain", b"#!/bin/sh\n", 0o644)
    orphan = script(tmp_path / "orphan", b"#!/no/such/interpreter\n")
    complaints = {
        ("no-such-agent",): "The program 'no-such-agent' was not found on PATH.",
        ("/no/such/agent",): "The program '/no/such/agent' does not exist.",
        (str(tmp_path),): f"The program '{tmp_path}' is a directory.",
        (plain,): f"The program '{plain}' is not executable.",
        (orphan,): f"The program '{orphan}' could not be started: "
        "the interpreter that it names does not exist.",
        (): "The agent's command is empty.",
        (sys.executable, "a\0b"): f"The command of '{sys.executable}' contains a NUL character.",
    }
    for command, complaint in complaints.items():
        with pytest.raises(SpawnError) as failure:
            await spawn(list(command), custody, link)
        assert str(failure.value) == complaint
    with pytest.raises(SpawnError, match="The working directory '/no/such/folder' does not exist"):
        await spawn([sys.executable], custody, link, cwd="/no/such/folder")
    assert link.closings == []


async def test_a_file_that_is_no_program_is_told_in_a_sentence(
    custody: Custody, link: LinkRecorder, tmp_path: Path
) -> None:
    noise = script(tmp_path / "noise", b"\x7fELF and then nothing\n")
    with pytest.raises(SpawnError, match="not a program for this machine"):
        await spawn([noise], custody, link)


async def test_a_relative_program_is_found_from_the_working_directory(
    custody: Custody, link: LinkRecorder, tmp_path: Path
) -> None:
    script(tmp_path / "agent", b"#!/bin/sh\nexec cat\n")
    agent = await spawn(["./agent"], custody, link, cwd=str(tmp_path))
    agent.send(b"1")
    assert await link.message() == 1
    await agent.stop()


async def test_a_spawn_that_is_given_up_leaves_nothing_running(custody: Custody, link: LinkRecorder) -> None:
    custody.start()
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    before = set(children.read_text().split())
    task = asyncio.ensure_future(spawn([sys.executable, MISBEHAVING_CHILD, "stubborn"], custody, link))
    await until(lambda: set(children.read_text().split()) - before or task.done())
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        await task.result().stop(patience=0)
    await until(lambda: set(children.read_text().split()) <= before)


def test_the_agents_environment_is_the_clients_made_quiet() -> None:
    client = {"PATH": "/bin", "CLAUDECODE": "1", "NODE_CHANNEL_FD": "3", "NO_UPDATE_NOTIFIER": "no"}
    agent = agent_environment(client, {"KEY": "secret", "CAI_NO_UPDATE_CHECK": "0"})
    assert agent["PATH"] == "/bin"
    assert agent["KEY"] == "secret"
    assert agent["CAI_NO_UPDATE_CHECK"] == "0"  # the agent's own setting wins
    assert agent["NO_UPDATE_NOTIFIER"] == "no"  # so does what the client says
    assert agent["DISABLE_AUTOUPDATER"] == "1"
    assert "CLAUDECODE" not in agent
    assert "NODE_CHANNEL_FD" not in agent


async def test_an_agent_whose_pipes_cannot_be_watched_is_ended(
    start: Start, custody: Custody, monkeypatch: pytest.MonkeyPatch
) -> None:
    await (await start("echo")).stop()  # the watcher runs by now
    before = _children()
    seen: list[int] = []

    def no_descriptors(descriptor: int) -> int:
        seen.append(descriptor)
        if len(seen) > 1:
            raise OSError(errno.EMFILE, "Too many open files")
        return dup(descriptor)

    dup = os.dup
    monkeypatch.setattr(os, "dup", no_descriptors)
    with pytest.raises(SpawnError, match="too many open files"):
        await start("echo")
    monkeypatch.undo()
    assert _children() == before


def _children() -> set[str]:
    """The processes that this one started and that run, or have not been reaped."""
    return set(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split())
