"""What checkpoints cost: `python -m bench.checkpoints [FILES]`. Recording a project, its changes, and undoing them."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from dragoman.checkpoints.engine import Engine
from dragoman.config.sections.checkpoints import CheckpointsConfig
from dragoman.gateway.ports.checkpoints import Kind, Mark, Wish

FILES = 20_000
CHANGED = 500
ROUNDS = 9
SESSION = "dgm_bench"
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
    def __init__(self, state: Path, folder: Path) -> None:
        self.engine = Engine(state / "checkpoints", CheckpointsConfig())
        self._folder = str(folder)

    def record(self, kind: Kind) -> float:
        """Seconds until the checkpoint is made, for which a prompt waits; the index is brought up to date later."""
        began = time.perf_counter()
        with self.engine.record(SESSION, self._folder, Mark(kind)):
            return time.perf_counter() - began

    def revert(self) -> None:
        self.engine.restore(SESSION, self._folder, Wish(turn=1), lambda restored: None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=int, nargs="?", default=FILES)
    count = parser.parse_args().files
    with tempfile.TemporaryDirectory() as place:
        folder, state = Path(place, "project"), Path(place, "state")
        files = make_project(folder, count)
        recorder = Recorder(state, folder)
        print(f"{count} files, never recorded: {recorder.record('begin') * 1000:.0f} ms")
        for path in files[:: max(1, count // CHANGED)][:CHANGED]:
            path.write_text(path.read_text().replace("value_7 =", "changed ="))
        print(f"{CHANGED} of them changed: {recorder.record('end') * 1000:.0f} ms")
        warm = [recorder.record(kind) for _ in range(ROUNDS) for kind in ("begin", "end")]
        median, most = statistics.median(warm) * 1000, max(warm) * 1000
        print(f"none changed, median of {len(warm)}: {median:.0f} ms, most {most:.0f} ms")
        shown = [seconds(lambda: recorder.engine.changes(SESSION)) for _ in range(ROUNDS)]
        print(f"changes of {CHANGED} files, median of {ROUNDS}: {statistics.median(shown) * 1000:.0f} ms")
        print(f"undoing them: {seconds(recorder.revert) * 1000:.0f} ms")


if __name__ == "__main__":
    main()
