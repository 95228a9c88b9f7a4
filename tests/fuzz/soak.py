"""`make soak`: seams, floods and kills in their full form, then rounds of fuzzing that add up for one revision.

    python -m fuzz.soak ROUNDS [--fuzz-only]        counts are in .cache/soak/REVISION.json

A round is a million inputs for the parsers and ten thousand for each endpoint; ten are the goal. All rounds of one call
are made together, endpoint by endpoint and parser by parser: each in one process, as many at once as there are cores.
Counts are saved every few seconds, and what was interrupted goes on with the next call. The first find ends it, with
status 1.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from contextlib import aclosing
from dataclasses import dataclass

from msgspec.structs import replace

from fuzz import endpoints, kills
from fuzz.account import ROOT, Account, State
from fuzz.targets import TARGETS
from fuzz.worker import watch

PARSER_INPUTS = 1_000_000
ENDPOINT_INPUTS = 10_000
EACH_PARSER = -(-PARSER_INPUTS // len(TARGETS))
GOAL = 10
KILLS = 1000
MOST_GROWTH = 64
"""Megabytes that a process may have more at any time than after its warm-up."""
FAULTS = ["tests/sessions/soak", "tests/server/soak"]


@dataclass(frozen=True)
class Job:
    module: str
    name: str
    counts: dict[str, int]
    wanted: int
    """Inputs in all, those of former calls included."""

    @property
    def missing(self) -> int:
        return self.wanted - self.counts.get(self.name, 0)


def jobs(state: State, rounds: int) -> list[Job]:
    """What lacks inputs for so many rounds; the short ones last, so that no core waits long at the end."""
    found = [
        Job("fuzz.endpoints", name, state.endpoints, ENDPOINT_INPUTS * rounds) for name in endpoints.ENDPOINTS
    ]
    found += [Job("fuzz.run", name, state.parsers, EACH_PARSER * rounds) for name in TARGETS]
    return [job for job in found if job.missing > 0]


class Find(Exception):
    pass


async def fuzz(account: Account, rounds: int) -> None:
    waiting = iter(jobs(account.state, rounds))

    async def core() -> None:
        for job in waiting:
            await work(account, job)

    async with asyncio.TaskGroup() as cores:
        for _ in range(os.cpu_count() or 1):
            cores.create_task(core())


async def work(account: Account, job: Job) -> None:
    began, missing = time.monotonic(), job.missing
    async with aclosing(watch(job.module, job.name, missing, seed=job.wanted - missing + 1)) as results:
        async for result in results:
            if result.grown > MOST_GROWTH and not result.find:
                result = replace(result, find=f"{result.grown} MB more than at the beginning")
            account.add(job.counts, job.name, result)
            if result.find:
                raise Find(f"{job.name}: {result.find}")
    if job.missing > 0:
        raise Find(f"{job.name}: its process ended {job.missing} inputs too early")
    done, seconds = job.counts[job.name], time.monotonic() - began
    print(f"{job.name:20} {done:>10,} inputs, {missing / seconds:>8,.0f} a second", flush=True)


def rounds_done(state: State) -> int:
    return min(
        *(state.parsers.get(name, 0) // EACH_PARSER for name in TARGETS),
        *(state.endpoints.get(name, 0) // ENDPOINT_INPUTS for name in endpoints.ENDPOINTS),
    )


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
    try:
        asyncio.run(fuzz(account, rounds_done(account.state) + rounds))
    except* Find as found:
        sys.exit("\n".join(map(str, found.exceptions)))
    except* KeyboardInterrupt:
        sys.exit("interrupted; the counts are kept")
    state = account.state
    print(
        f"{account.file.stem}: {rounds_done(state)} of {GOAL} rounds; {sum(state.parsers.values()):,} inputs for "
        f"{len(state.parsers)} parsers, {sum(state.endpoints.values()):,} for {len(state.endpoints)} endpoints, "
        f"{len(state.finds)} finds, at most {state.most_grown} MB more memory, {state.seconds / 60:.0f} minutes"
    )


if __name__ == "__main__":
    given = [word for word in sys.argv[1:] if word.isdigit()]
    main(int(given[0]) if given else GOAL, faults="--fuzz-only" not in sys.argv)
