"""How the watcher starts programs: what they are given, what is told of their end, and what happens without it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dragoman.agents.custody import Child, Custody, Launch, Ward, children, lifeline, marks, records
from dragoman.agents.custody.starter import Order
from dragoman.agents.custody.table import Process, Snapshot
from dragoman.agents.custody.tree import Strays, Tree
from dragoman.agents.process import AgentProcess, ExitStatus
from dragoman.agents.program import explain
from support.clients.link_recorder import LinkRecorder
from support.waiting import runs, until, until_gone

MISBEHAVING_CHILD = str(Path(__file__).parents[1] / "support" / "processes" / "misbehaving_child.py")
linux = pytest.mark.skipif(not lifeline.WATCHER_STARTS, reason="the watcher starts programs on Linux alone")


@pytest.fixture
async def custody() -> AsyncIterator[Custody]:
    custody = Custody()
    yield custody
    await custody.close()


@pytest.fixture
async def link() -> LinkRecorder:
    return LinkRecorder()


async def run(custody: Custody, script: str, output: Path, env: dict[str, str] | None = None) -> int | None:
    """Run a shell script to its end; its return code."""
    ward, child = await begin(custody, script, output, env)
    code = await ended(child)
    await custody.end(ward)
    return code


async def begin(
    custody: Custody, script: str, output: Path, env: dict[str, str] | None = None
) -> tuple[Ward, Child]:
    with Path(os.devnull).open("rb") as null, output.open("wb") as file:
        streams = (null.fileno(), file.fileno(), file.fileno())
        command = ["/bin/sh", "-c", script]
        variables = {"PATH": os.defpath} if env is None else env
        return await custody.launch(Launch("/bin/sh", command, variables, str(output.parent), streams))


async def ended(child: Child) -> int | None:
    over: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
    child.on_exit(over.set_result)
    async with asyncio.timeout(20):
        return await over


def parent_of(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_bytes()
    return int(stat[stat.rfind(b")") + 2 :].split()[1])


@linux
async def test_a_program_is_a_child_of_the_watcher_in_a_session_of_its_own(
    custody: Custody, link: LinkRecorder
) -> None:
    agent = await AgentProcess.spawn(
        [sys.executable, MISBEHAVING_CHILD, "mark"], handler=link, custody=custody, env={}
    )
    await link.message()
    assert parent_of(agent.pid) == custody.watcher_pid
    assert os.getsid(agent.pid) == os.getpgid(agent.pid) == agent.pid
    await agent.stop()


@linux
@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", -signal.SIGTERM)]
)
async def test_how_a_program_ended_is_told(custody: Custody, tmp_path: Path, script: str, code: int) -> None:
    assert await run(custody, script, tmp_path / "out") == code


@linux
async def test_a_program_gets_its_variables_folder_and_signals_as_from_the_gateway(
    custody: Custody, tmp_path: Path
) -> None:
    folder = tmp_path / "with space\nand line"
    folder.mkdir()
    odd = {"PATH": os.defpath, "EMPTY": "", "LINES": "a\nb=c", "BYTES": "\udcff"}
    script = 'pwd -P; printf \'%s|%s|%s\\n\' "$EMPTY" "$LINES" "$BYTES"; grep -E \'Sig(Ign|Blk)\' /proc/self/status'
    await run(custody, script, folder / "out", odd)
    told = (folder / "out").read_bytes()
    assert told.startswith(os.fsencode(folder) + b"\n|a\nb=c|\xff")
    blocked, ignored = (int(line.split()[1], 16) for line in told.splitlines()[-2:])
    mine = Path("/proc/self/status").read_text().splitlines()
    here = int(next(line.split()[1] for line in mine if line.startswith("SigIgn")), 16)
    by_python = (1 << (signal.SIGPIPE - 1)) | (1 << (signal.SIGXFSZ - 1))
    assert (blocked, ignored) == (0, here & ~by_python)


@linux
async def test_a_folder_that_cannot_be_entered_is_told(custody: Custody, tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    with pytest.raises(OSError) as failure:
        await custody.launch(Launch("/bin/sh", ["/bin/sh"], {}, gone, (0, 1, 2)))
    told = f"The working directory {gone!r} cannot be entered: No such file or directory."
    assert explain("/bin/sh", failure.value, gone) == told


@linux
async def test_a_variable_that_no_program_can_have_is_refused(custody: Custody, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="NUL"):
        await run(custody, "true", tmp_path / "out", {"A": "b\0C=d"})


@linux
async def test_orphans_that_end_do_not_stay_as_zombies(custody: Custody, tmp_path: Path) -> None:
    ward, child = await begin(custody, "for n in 1 2 3; do (true &) ; done; sleep 1000", tmp_path / "out")
    own = Path(f"/proc/{custody.watcher_pid}/task/{custody.watcher_pid}/children")
    await until(lambda: Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().strip())
    await until(lambda: own.read_text().split() == [str(child.pid)])
    await custody.end(ward)


@linux
async def test_the_end_of_a_program_is_told_though_its_watcher_was_killed(
    custody: Custody, link: LinkRecorder
) -> None:
    agent = await AgentProcess.spawn(
        [sys.executable, MISBEHAVING_CHILD, "mark"], handler=link, custody=custody, env=os.environ
    )
    await link.message()
    first = custody.watcher_pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    await until(lambda: custody.watcher_pid not in (None, first))
    os.kill(agent.pid, signal.SIGTERM)
    assert await link.closed() == "agent ended"
    assert agent.exit == ExitStatus(None, None)
    await agent.wait_closed()


@linux
async def test_a_watcher_that_is_stuck_when_a_program_is_to_be_started_is_replaced(
    custody: Custody, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    custody.start()
    first = custody.watcher_pid
    assert first is not None
    os.kill(first, signal.SIGSTOP)
    monkeypatch.setattr(children, "START_PATIENCE", 2.0)
    assert await run(custody, "exit 3", tmp_path / "out") == 3
    assert not runs(first)


async def test_where_the_watcher_starts_nothing_the_gateway_does(
    custody: Custody, link: LinkRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifeline, "WATCHER_STARTS", False)
    agent = await AgentProcess.spawn(
        [sys.executable, MISBEHAVING_CHILD, "detached"], handler=link, custody=custody, env=os.environ
    )
    pids = (await link.message())["pids"]
    assert parent_of(agent.pid) == os.getpid()
    await agent.stop()
    assert agent.exit == ExitStatus(0, None)
    await until_gone(pids)


def test_an_order_arrives_as_it_was_given() -> None:
    order = Order("m4rk", b"/bin/x", [b"x", b"", b"-c"], {b"A": b"b=c", b"E": b""})
    assert Order.unpack(order.pack()) == order


def test_numbers_of_wards_lie_below_those_of_gateways_and_far_above_limits_that_people_set() -> None:
    for ward in (Ward(), Ward("0" * 16), Ward("f" * 16)):
        own, gateway = marks.number_of(ward.marker), marks.number_of(ward.marker[:16])
        assert own is not None
        assert gateway is not None
        assert 1 << 40 <= own < 1 << 60 <= gateway < 1 << 61
    assert marks.number_of("m4rk") is marks.number_of("") is None


def test_limits_are_read_as_the_kernel_prints_them() -> None:
    line = b"Max file locks            123                  unlimited            locks     \n"
    assert marks.parse(b"Max processes  5 6 processes\n" + line + b"Max x 1 2 y\n") == (123,)
    assert marks.parse(b"") == ()


def test_a_tree_has_whoever_carries_its_number_and_nothing_that_is_older() -> None:
    marker = Ward().marker
    number = marks.number_of(marker)
    assert number is not None
    processes = {
        100: Process(100, 50, 100, 100, "500"),
        101: Process(101, 1, 101, 101, "600"),
        102: Process(102, 1, 102, 102, "400"),
        103: Process(103, 1, 103, 103, "600"),
    }
    numbers = {101: (number, 7), 102: (number, 7), 103: (7, 7)}
    tree = Tree(marker)
    tree.root(100, "500")
    snapshot = Snapshot(processes, lambda _: b"", lambda pid: numbers.get(pid, ()))
    assert {process.pid for process in tree.members(snapshot)} == {100, 101}


def test_strays_descend_from_this_process_and_belong_to_no_tree() -> None:
    here = os.getpid()
    processes = {
        here: Process(here, 1, here, here, "1"),
        100: Process(100, here, 100, 100, "2"),
        101: Process(101, 100, 101, 101, "3"),
        200: Process(200, here, 200, 200, "2"),
        201: Process(201, 200, 201, 201, "3"),
        300: Process(300, 1, 300, 300, "3"),
    }
    tree = Tree("m4rk")
    tree.root(100, "2")
    strays = Strays(lambda: [tree])
    snapshot = Snapshot(processes, lambda _: b"")
    assert {process.pid for process in strays.members(snapshot)} == {200, 201}


@linux
def test_a_record_tells_of_a_gateway_that_is_dead(tmp_path: Path) -> None:
    folder = str(tmp_path / "custody")
    mine, other = records.make(folder, "a" * 16), records.make(folder, "b" * 16)
    (tmp_path / "custody" / "a.custody").touch()  # too short: it would be found in anybody's environment
    (tmp_path / "custody" / "notes.txt").touch()
    assert list(records.dead_gateways(mine)) == []
    os.close(other)  # as the kernel does
    (left,) = records.dead_gateways(mine)
    assert left.token == "b" * 16
    left.settle(ended=False)
    (left,) = records.dead_gateways(mine)
    left.settle(ended=True)
    assert list(records.dead_gateways(mine)) == []
    records.remove(mine)
    os.close(mine)
    assert not list((tmp_path / "custody").glob("?" * 16 + ".custody"))


@linux
async def test_a_gateway_that_ends_in_order_leaves_no_record(tmp_path: Path) -> None:
    custody = Custody(tmp_path / "custody")
    await run(custody, "true", tmp_path / "out")
    assert len(list((tmp_path / "custody").iterdir())) == 1
    await custody.close()
    assert list((tmp_path / "custody").iterdir()) == []


@linux
async def test_a_folder_that_cannot_have_records_keeps_nothing_from_starting(tmp_path: Path) -> None:
    (tmp_path / "custody").write_text("a file")
    custody = Custody(tmp_path / "custody")
    assert await run(custody, "exit 4", tmp_path / "out") == 4
    await custody.close()


@linux
async def test_what_a_process_below_another_gateway_starts_keeps_the_mark_of_that_one(
    custody: Custody, tmp_path: Path
) -> None:
    ward, child = await begin(custody, "sleep 1000", tmp_path / "out")
    soft, hard = marks.parse(Path(f"/proc/{child.pid}/limits").read_bytes())
    assert (soft, hard) == (marks.number_of(ward.marker), marks.number_of(ward.marker[:16]))
    inner = Ward()
    script = (
        "import sys; sys.path[:0] = sys.argv[1:2]\n"
        "from dragoman.agents.custody import marks\n"
        "marks.apply(sys.argv[2])\n"
        "print(open('/proc/self/limits').read())\n"
    )
    source = str(Path(marks.__file__).parents[3])
    done = subprocess.run(
        ["prlimit", f"--locks={soft}:{hard}", sys.executable, "-c", script, source, inner.marker],
        capture_output=True,
        check=True,
    )
    assert marks.parse(done.stdout) == (marks.number_of(inner.marker), hard)
    await custody.end(ward)


def test_the_watcher_loads_nothing_heavy() -> None:
    """The first agent of a gateway waits for it."""
    heavy = {"collections", "contextlib", "enum", "functools", "re", "signal", "socket", "typing"}
    folder = str(Path(lifeline.__file__).parent)
    code = f"import sys; sys.path.append({folder!r}); import watcher; print(*{heavy!r} & sys.modules.keys())"
    loaded = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (loaded.returncode, loaded.stdout.split()) == (0, []), loaded.stderr
