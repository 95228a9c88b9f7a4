"""What checkpoints cost: `python -m bench.checkpoints [FILES]`.

First an echo in a small project with and without checkpoints, alternately; then recording a project of FILES files,
compared and watched, its changes, and undoing them; at last what is not committed in a repository of them, and forks of
a session in a worktree of it. Times are those of the clock, with the processor's in brackets, which other load on the
machine changes less.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from bench.against import processor
from bench.contenders import Arena, dragoman_command
from bench.peers.client import Conversation
from dragoman.checkpoints.engine import Engine
from dragoman.commits.engine import Engine as Commits
from dragoman.config.sections.checkpoints import CheckpointsConfig
from dragoman.config.sections.worktrees import WorktreesConfig
from dragoman.gateway.ports.checkpoints import Kind, Mark, Wish
from dragoman.gateway.ports.worktrees import WorktreeWish
from dragoman.worktrees.engine import Engine as Worktrees

SMALL = 30
ECHO_ROUNDS, ECHOES, SAVES = 10, 200, 3
PAUSE = 0.2
FILES = 20_000
CHANGED = 500
ROUNDS = 9
FORKS = 5
EDITED = 20
"""Files that are not committed in the worktree that is forked."""
SESSION = "dgm_bench"
KINDS: tuple[Kind, Kind] = ("begin", "end")
LINES = "".join(f"value_{number} = {number}\n" for number in range(100))


def make_project(folder: Path, files: int) -> list[Path]:
    made = []
    for number in range(files):
        path = folder / f"part{number // 1000}" / f"module{number // 50}" / f"file{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {number}\n{LINES}")
        made.append(path)
    return made


def spent() -> float:
    """Seconds of the processor, of this process and of those that it waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


class Times:
    """Measurements of one row."""

    def __init__(self, row: str) -> None:
        self._row = row
        self._clock: list[float] = []
        self._processor: list[float] = []

    def measure(self, work: Callable[[], float | None]) -> None:
        """Time some work; if it returns seconds, the clock's are those."""
        before, began = spent(), time.perf_counter()
        told = work()
        self._clock.append(1000 * (told if told is not None else time.perf_counter() - began))
        self._processor.append(1000 * (spent() - before))

    def print(self) -> None:
        clock, used = statistics.median(self._clock), statistics.median(self._processor)
        few = len(self._clock) == 1
        more = "" if few else f", median of {len(self._clock)}, most {max(self._clock):.1f} ms"
        print(f"{self._row}: {clock:.1f} ms [{used:.1f} ms]{more}")


def times(row: str, work: Callable[[], float | None], rounds: int = 1) -> None:
    taken = Times(row)
    for _ in range(rounds):
        taken.measure(work)
    taken.print()


class Recorder:
    def __init__(self, state: Path, folder: Path, *, watching: bool = False) -> None:
        self.engine = Engine(state / "checkpoints", CheckpointsConfig(), watching=watching)
        self._folder = str(folder)

    def record(self, kind: Kind) -> float:
        """Seconds until the checkpoint is made, for which a prompt waits; the index is brought up to date later."""
        began = time.perf_counter()
        with self.engine.record(SESSION, self._folder, Mark(kind)):
            return time.perf_counter() - began

    def revert(self) -> None:
        self.engine.restore(SESSION, self._folder, Wish(turn=1), lambda restored: None)


def measure_echo() -> None:
    """A turn whose project did not change, and one before which a file was saved."""
    with Arena(0.8, ECHO_ROUNDS) as arena, ExitStack() as stack:
        (changed, *_) = make_project(arena.workspace, SMALL)
        talks = {}
        for name, settings in (("without", "[checkpoints]\nenabled = false\n"), ("with", "")):
            home = arena.home(name=name)
            with (home / "config.toml").open("a") as config:
                config.write(settings)
            talk = stack.enter_context(arena.start(dragoman_command("bench"), home=home))
            talk.initialize()
            talks[name] = talk, talk.new_session(arena.workspace)
        samples: dict[str, list[float]] = {}
        for number in range(ECHO_ROUNDS + 1):
            for name in list(talks)[:: 1 if number % 2 else -1]:
                taken = measure_round(*talks[name], changed)
                for row, value in taken.items() if number else ():  # the first round warms up
                    samples.setdefault(f"{row} {name} checkpoints", []).append(value)
    for row, values in sorted(samples.items()):
        print(
            f"{row}, median of {len(values)}: {statistics.median(values):.0f} µs, least {min(values):.0f} µs"
        )


def measure_round(talk: Conversation, session: str, changed: Path) -> dict[str, float]:
    before = processor(talk.pid)
    echo = 1e6 * statistics.median(talk.echo(session) for _ in range(ECHOES))
    spent = (processor(talk.pid) - before) / ECHOES
    saved = []
    for _ in range(SAVES):
        changed.write_text(f"{time.time_ns()}\n")
        saved.append(1e6 * talk.echo(session))
        time.sleep(PAUSE)  # the end of the turn is recorded after its answer
    return {
        "echo": echo,
        "echo, of the gateway's main thread": spent,
        "echo after a file was saved": statistics.median(saved),
    }


def measure_wait(count: int) -> None:
    """The first prompt in a project that was never recorded waits for its checkpoint, but not for long."""
    with Arena(0.8, ECHO_ROUNDS) as arena:
        make_project(arena.workspace, count)
        with arena.start(dragoman_command("bench"), home=arena.home(name="large")) as talk:
            talk.initialize()
            session = talk.new_session(arena.workspace)
            times(f"first prompt in {count} files, until it is answered", lambda: talk.echo(session))


def measure_project(place: Path, count: int) -> None:
    folder, state = place / "project", place / "state"
    files = make_project(folder, count)
    recorder = Recorder(state, folder)
    times(f"{count} files, never recorded", lambda: recorder.record("begin"))
    change(files)
    times(f"{CHANGED} of them changed", lambda: recorder.record("end"))
    both = itertools.cycle(KINDS)
    times("none changed", lambda: recorder.record(next(both)), 2 * ROUNDS)
    watching = Recorder(state, folder, watching=True)
    for kind in KINDS:
        watching.record(kind)
    times("none changed, watched", lambda: watching.record(next(both)), 2 * ROUNDS)

    def save() -> float:
        files[1].write_text(f"{time.time_ns()}\n")
        return watching.record(next(both))

    times("one changed, watched", save, ROUNDS)
    watching.engine.stop()
    times(f"changes of {CHANGED} files", lambda: ignore(recorder.engine.changes(SESSION)), ROUNDS)
    times("undoing them", recorder.revert)


def measure_repository(place: Path, count: int) -> None:
    folder, state = place / "repository", place / "state"
    files = make_project(folder, count)
    name = ("-c", "user.name=Bench", "-c", "user.email=bench@example.org")
    for words in (("init", "-q"), ("add", "-A"), (*name, "commit", "-qm", "first"), ("repack", "-adq")):
        subprocess.run(["git", *words], cwd=folder, check=True)
    worktrees, root = Worktrees(state / "worktrees"), str(folder)
    wish, settings = WorktreeWish(name="one"), WorktreesConfig()
    times(
        f"worktree of {count} files",
        lambda: ignore(worktrees.create(f"{SESSION}_one", root, root, wish, settings, box=None)),
    )
    (made,) = worktrees.all(root)
    for path in files[:EDITED]:
        Path(made.folder, path.relative_to(folder)).write_text("changed\n")
    ids = itertools.count()

    def fork() -> None:
        worktrees.fork(
            f"{SESSION}_{next(ids)}", f"{SESSION}_one", made.folder, WorktreeWish(), None, box=None
        )

    times(f"fork of it, {EDITED} files not committed", fork, FORKS)
    change(files)
    commits = Commits(state, CheckpointsConfig())
    times(f"{CHANGED} of {count} files not committed", lambda: ignore(commits.uncommitted(root)), ROUNDS)


def change(files: list[Path]) -> None:
    for path in files[:: max(1, len(files) // CHANGED)][:CHANGED]:
        path.write_text(path.read_text().replace("value_7 =", "changed ="))


def ignore(result: object) -> None:
    """For work whose result is of no interest."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=int, nargs="?", default=FILES)
    count = parser.parse_args().files
    measure_echo()
    measure_wait(count)
    with tempfile.TemporaryDirectory() as place:
        measure_project(Path(place), count)
    for size in sorted({1000, count}):
        with tempfile.TemporaryDirectory() as place:
            measure_repository(Path(place), size)


if __name__ == "__main__":
    main()
