"""`make soak`: seams, floods and kills in their full form, then rounds of fuzzing that add up for one revision.

    python -m fuzz.soak ROUNDS [--fuzz-only]        counts are in .cache/soak/REVISION.json

A round is a million inputs for the parsers and ten thousand for each endpoint; ten are the goal. What was interrupted
goes on with the next call. The first find ends it, with status 1.
"""

from __future__ import annotations

import subprocess
import sys
import time

import uvloop

from fuzz import endpoints, kills
from fuzz.account import ROOT, Account, State
from fuzz.run import Result, run
from fuzz.targets import TARGETS

PARSER_INPUTS = 1_000_000
ENDPOINT_INPUTS = 10_000
GOAL = 10
KILLS = 1000
MOST_GROWTH = 64
"""Megabytes that a process may have more at the end of a round than after its warm-up."""
FAULTS = ["tests/sessions/soak", "tests/server/soak"]


def check(name: str, result: Result) -> None:
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
            check(name, result)
    for name in endpoints.ENDPOINTS:
        missing = ENDPOINT_INPUTS * number - account.state.endpoints.get(name, 0)
        if missing > 0:
            began = time.monotonic()
            result = uvloop.run(endpoints.run(name, missing, seed=2 * number))
            account.add(account.state.endpoints, name, result, time.monotonic() - began)
            check(name, result)


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
    if faults and account.state.kills < KILLS:
        kills.main(KILLS - account.state.kills, kills.GATEWAYS)
        account = Account.of_revision()
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
