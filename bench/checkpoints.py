"""What checkpoints cost: `python -m bench.checkpoints [FILES]`.

First an echo in a small project with and without checkpoints, alternately; then recording a project of FILES files,
compared and watched, its changes, and undoing them.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from bench.against import processor
from bench.contenders import Arena, dragoman_command
from bench.peers.client import Conversation
from dragoman.checkpoints.engine import Engine
from dragoman.config.sections.checkpoints import CheckpointsConfig
from dragoman.gateway.ports.checkpoints import Kind, Mark, Wish

SMALL = 30
ECHO_ROUNDS, ECHOES, SAVES = 10, 200, 3
PAUSE = 0.2
FILES = 20_000
CHANGED = 500
ROUNDS = 9
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


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=int, nargs="?", default=FILES)
    count = parser.parse_args().files
    measure_echo()
    with tempfile.TemporaryDirectory() as place:
        folder, state = Path(place, "project"), Path(place, "state")
        files = make_project(folder, count)
        recorder = Recorder(state, folder)
        print(f"{count} files, never recorded: {recorder.record('begin') * 1000:.0f} ms")
        for path in files[:: max(1, count // CHANGED)][:CHANGED]:
            path.write_text(path.read_text().replace("value_7 =", "changed ="))
        print(f"{CHANGED} of them changed: {recorder.record('end') * 1000:.0f} ms")
        warm = [recorder.record(kind) for _ in range(ROUNDS) for kind in KINDS]
        median, most = statistics.median(warm) * 1000, max(warm) * 1000
        print(f"none changed, median of {len(warm)}: {median:.0f} ms, most {most:.0f} ms")
        watching = Recorder(state, folder, watching=True)
        for kind in KINDS:
            watching.record(kind)
        warm = [watching.record(kind) for _ in range(ROUNDS) for kind in KINDS]
        print(
            f"none changed, watched: {statistics.median(warm) * 1000:.1f} ms, most {max(warm) * 1000:.1f} ms"
        )
        one = []
        for number in range(ROUNDS):
            files[1].write_text(f"{number}\n")
            one.append(watching.record(KINDS[number % 2]))
        print(f"one changed, watched: {statistics.median(one) * 1000:.1f} ms, most {max(one) * 1000:.1f} ms")
        watching.engine.stop()
        shown = [seconds(lambda: recorder.engine.changes(SESSION)) for _ in range(ROUNDS)]
        print(f"changes of {CHANGED} files, median of {ROUNDS}: {statistics.median(shown) * 1000:.0f} ms")
        print(f"undoing them: {seconds(recorder.revert) * 1000:.0f} ms")


if __name__ == "__main__":
    main()
