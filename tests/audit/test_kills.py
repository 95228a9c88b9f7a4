"""`kill -9` at any moment leaves no answer without its record."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.store.audit_kills import AuditKills

LINES = 1900
"""At least as many are executed for three questions; fewer would mean that they were not tried."""
STATES = 35
"""At least as often something changes outside of the process meanwhile."""
STEP = int(os.environ.get("KILL_STEP", "40"))
"""Lines from one kill to the next in the long form, from a random one on; 1 tries them all."""
AT_ONCE = 4
"""Gateways that run at the same time in the long form."""


async def killed_at_random(home: Path, workspace: Path, rounds: int, seed: int) -> int:
    kills = AuditKills(home, workspace, seed)
    for _ in range(rounds):
        await kills.kill_at_random()
    return kills.answers


async def killed_at_all(home: Path, workspace: Path, what: str, numbers: Iterator[int]) -> int:
    """Kill gateways before these lines or states, until one is not reached; how many were killed."""
    kills = AuditKills(home, workspace, sessions=1, questions=3)
    for number in numbers:
        if not await kills.kill_at(what, number):
            break
    assert kills.answers > 3
    return kills.round - 1


async def several(home: Path, workspace: Path, what: str, first: int, step: int) -> int:
    """The same with several gateways at a time, each with a home of its own."""
    rows = [
        killed_at_all(home / str(row), workspace, what, itertools.count(first + row * step, AT_ONCE * step))
        for row in range(AT_ONCE)
    ]
    return sum(await asyncio.gather(*rows))


async def test_a_gateway_that_is_killed_while_questions_are_answered(home: Path, workspace: Path) -> None:
    assert await killed_at_random(home, workspace, 5, seed=7) > 20


async def test_a_gateway_that_is_killed_in_some_states(home: Path, workspace: Path) -> None:
    assert await killed_at_all(home, workspace, "state", itertools.count(5, 7)) >= STATES // 7


@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("seed", range(4))
async def test_a_gateway_that_is_killed_again_and_again(home: Path, workspace: Path, seed: int) -> None:
    assert await killed_at_random(home, workspace, 100, seed) > 1000


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_a_gateway_that_is_killed_in_any_state(home: Path, workspace: Path) -> None:
    assert await several(home, workspace, "state", 1, 1) >= STATES


@pytest.mark.long
@pytest.mark.timeout(7200)
async def test_a_gateway_that_is_killed_before_any_line(home: Path, workspace: Path) -> None:
    first = random.SystemRandom().randint(1, STEP)
    killed = await several(home, workspace, "line", first, STEP)
    assert killed >= (LINES - first) // STEP, first
    print(f"{killed} gateways were killed, before every {STEP}. line from {first} on")
