"""This revision against another one, alternately in one run: `python -m bench.against REVISION [--write-docs]`.

Measures what has no rules to ask: round trips and floods of messages, with and without a journal, and the time from the
spawn of `dragoman acp` to its answer to `initialize`. Both revisions run with the same interpreter and packages, each
with a home of its own; whichever is measured first changes with each round. The ratio is that of the medians.
"""

from __future__ import annotations

import argparse
import io
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.contenders import Arena
from bench.documentation import machine, revision, write_section
from bench.installs import ROOT
from bench.peers.client import Conversation

ROUNDS = 15
ECHOES = 200
UPDATES, SIZE = 5_000, 120
MOST = 1.05
"""The ratio up to which a revision counts as no slower: two runs of one revision differ by less."""


@dataclass
class Side:
    """One of the two revisions, and what was measured of it."""

    name: str
    source: Path
    samples: dict[str, list[float]] = field(default_factory=dict)

    @contextmanager
    def start(self, arena: Arena, *, journal: bool) -> Iterator[Conversation]:
        home = arena.home(journal, f"{self.name}-{'journal' if journal else 'plain'}")
        env = {**arena.environment(home), "PYTHONPATH": str(self.source), "PYTHONSAFEPATH": "1"}
        command = [sys.executable, "-m", "dragoman", "acp", "bench"]
        with Conversation(command, env, arena.workspace) as talk:
            talk.initialize()
            yield talk

    def median(self, row: str) -> float:
        return statistics.median(self.samples[row])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.against", description=__doc__)
    parser.add_argument("revision", help="what git calls it: a hash, a tag, HEAD~20")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--write-docs", action="store_true", help="put the table on the page")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="dragoman-against-") as folder,
        Arena(0.8, options.rounds) as arena,
    ):
        sides = Side("old", unpack(options.revision, Path(folder))), Side("new", ROOT / "src")
        for side in sides:
            check(side)
        measure(sides, arena, options.rounds)
    text = "\n".join(table(*sides))
    print(text)
    if options.write_docs:
        told = f"{revision()}, against {name_of(options.revision)}, medians of {options.rounds} rounds, {machine()}."
        write_section("against", f"{told}\n\n{text}")
    slower = [row for row in sides[0].samples if ratio(*sides, row) > MOST]
    return 1 if slower else 0


def unpack(wanted: str, folder: Path) -> Path:
    """The sources of a revision, in a folder."""
    packed = subprocess.run(["git", "archive", wanted, "src"], cwd=ROOT, capture_output=True, check=False)
    if packed.returncode:
        raise SystemExit(f"git has no sources of {wanted!r}: {packed.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def name_of(wanted: str) -> str:
    words = ["git", "rev-parse", "--short=12", wanted]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def check(side: Side) -> None:
    """Raise if another installation would be measured."""
    env = {**os.environ, "PYTHONPATH": str(side.source), "PYTHONSAFEPATH": "1"}
    words = [sys.executable, "-c", "import dragoman; print(dragoman.__file__)"]
    found = subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout.strip()
    if not Path(found).is_relative_to(side.source):
        raise SystemExit(f"{found} would be measured instead of {side.source}")


def measure(sides: tuple[Side, Side], arena: Arena, rounds: int) -> None:
    for journal in (True, False):
        measure_messages(sides, arena, rounds, journal=journal)
    alternate(sides, "spawn to initialize, ms", lambda side: startup(side, arena), rounds)


def measure_messages(sides: tuple[Side, Side], arena: Arena, rounds: int, *, journal: bool) -> None:
    with ExitStack() as stack:
        talks = {side.name: stack.enter_context(side.start(arena, journal=journal)) for side in sides}
        sessions = {name: talk.new_session(arena.workspace) for name, talk in talks.items()}

        def echo(side: Side) -> dict[str, float]:
            talk, session = talks[side.name], sessions[side.name]
            before = processor(talk.pid)
            taken = 1e6 * statistics.median(talk.echo(session) for _ in range(ECHOES))
            return {"": taken, " of the gateway's processor": (processor(talk.pid) - before) / ECHOES}

        def flood(side: Side) -> dict[str, float]:
            talk, session = talks[side.name], sessions[side.name]
            talk.prepare(session, UPDATES, SIZE)
            before = processor(talk.pid)
            taken = 1e6 * talk.flood([session], UPDATES, SIZE).seconds / UPDATES
            return {"": taken, " of the gateway's processor": (processor(talk.pid) - before) / UPDATES}

        which = "" if journal else ", no journal"
        alternate(sides, f"echo{which}, µs", echo, rounds)
        alternate(sides, f"one update of a flood{which}, µs", flood, rounds)


def processor(pid: int) -> float:
    """Microseconds of a process's main thread on a processor: on a busy machine the clock measures the others."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1000


def startup(side: Side, arena: Arena) -> dict[str, float]:
    with side.start(arena, journal=True) as talk:
        taken = 1000 * (time.perf_counter() - talk.started)
        return {"": taken, " of its processor": processor(talk.pid) / 1000}


def alternate(
    sides: tuple[Side, Side], row: str, take: Callable[[Side], dict[str, float]], rounds: int
) -> None:
    """Measure both in turn; the first round of each warms up."""
    for number in range(rounds + 1):
        for side in sides if number % 2 else sides[::-1]:
            for what, taken in take(side).items():
                side.samples.setdefault(row + what, [])
                if number:
                    side.samples[row + what].append(taken)
    print(
        f"{row}: {sides[0].median(row):.1f} old, {sides[1].median(row):.1f} new", file=sys.stderr, flush=True
    )


def ratio(old: Side, new: Side, row: str) -> float:
    return new.median(row) / old.median(row)


def table(old: Side, new: Side) -> list[str]:
    lines = ["| | old | new | new / old |", "|---|---:|---:|---:|"]
    for row in old.samples:
        lines.append(
            f"| {row} | {old.median(row):.1f} | {new.median(row):.1f} | {ratio(old, new, row):.3f} |"
        )
    return lines


if __name__ == "__main__":
    raise SystemExit(main())
