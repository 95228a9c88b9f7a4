"""`make soak`: faults, seams and floods in their full form, then rounds of fuzzing that add up for one revision.

    python -m fuzz.soak ROUNDS [--fuzz-only]        counts are in .cache/soak/REVISION.json

A round is a million inputs for the parsers and ten thousand for each endpoint; ten are the goal. What was interrupted
goes on with the next call. The first find ends it, with status 1.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from fuzz import endpoints
from fuzz.run import HERE, Result, run
from fuzz.targets import TARGETS

ROOT = HERE.parents[1]
PARSER_INPUTS = 1_000_000
ENDPOINT_INPUTS = 10_000
GOAL = 10
MOST_GROWTH = 64
"""Megabytes that a process may have more at the end of a round than after its warm-up."""
FAULTS = ["tests/sessions/soak", "tests/server/soak"]


class State(msgspec.Struct):
    """What was run on one revision."""

    faults_passed: bool = False
    parsers: dict[str, int] = {}
    endpoints: dict[str, int] = {}
    most_grown: int = 0
    seconds: float = 0.0


@dataclass
class Account:
    file: Path
    state: State

    @classmethod
    def of_revision(cls) -> Account:
        said = ["git", "describe", "--always", "--abbrev=12", "--dirty", "--exclude=*"]
        revision = subprocess.run(said, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
        file = ROOT / ".cache" / "soak" / f"{revision}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        state = msgspec.json.decode(file.read_bytes(), type=State) if file.exists() else State()
        return cls(file, state)

    def save(self) -> None:
        self.file.write_bytes(msgspec.json.format(msgspec.json.encode(self.state), indent=1))

    def add(self, counts: dict[str, int], name: str, result: Result, seconds: float) -> None:
        counts[name] = counts.get(name, 0) + result.inputs
        self.state.most_grown = max(self.state.most_grown, result.grown)
        self.state.seconds += seconds
        self.save()
        print(
            f"{name:20} {counts[name]:>10,} inputs, {result.inputs / max(seconds, 0.001):>8,.0f} a second",
            flush=True,
        )
        if result.find or result.grown > MOST_GROWTH:
            sys.exit(f"{name}: {result.find or f'{result.grown} MB more than at the beginning'}")


def one_round(account: Account, number: int) -> None:
    """Whatever has less than `number` rounds' worth of inputs gets what is missing."""
    each = -(-PARSER_INPUTS // len(TARGETS))
    for name in TARGETS:
        missing = each * number - account.state.parsers.get(name, 0)
        if missing > 0:
            began = time.monotonic()
            result = run(name, missing, seed=number)
            account.add(account.state.parsers, name, result, time.monotonic() - began)
    for name in endpoints.ENDPOINTS:
        missing = ENDPOINT_INPUTS * number - account.state.endpoints.get(name, 0)
        if missing > 0:
            began = time.monotonic()
            result = asyncio.run(endpoints.run(name, missing, seed=2 * number))
            account.add(account.state.endpoints, name, result, time.monotonic() - began)


def rounds_done(state: State) -> int:
    each = -(-PARSER_INPUTS // len(TARGETS))
    parsers = min((state.parsers.get(name, 0) // each for name in TARGETS), default=0)
    return min(parsers, min(state.endpoints.get(name, 0) // ENDPOINT_INPUTS for name in endpoints.ENDPOINTS))


def main(rounds: int, *, faults: bool) -> None:
    account = Account.of_revision()
    if faults and not account.state.faults_passed:
        command = [sys.executable, "-m", "pytest", "-m", "soak", "-o", "timeout=3600", *FAULTS]
        if subprocess.run(command, cwd=ROOT, check=False).returncode:
            sys.exit(1)
        account.state.faults_passed = True
        account.save()
    done = rounds_done(account.state)
    for number in range(done + 1, done + rounds + 1):
        one_round(account, number)
    state = account.state
    print(
        f"{account.file.stem}: {rounds_done(state)} of {GOAL} rounds; {sum(state.parsers.values()):,} inputs for "
        f"{len(state.parsers)} parsers, {sum(state.endpoints.values()):,} for {len(state.endpoints)} endpoints, "
        f"0 finds, at most {state.most_grown} MB more memory, {state.seconds / 60:.0f} minutes"
    )


if __name__ == "__main__":
    given = [word for word in sys.argv[1:] if word.isdigit()]
    main(int(given[0]) if given else GOAL, faults="--fuzz-only" not in sys.argv)
