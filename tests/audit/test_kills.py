"""`kill -9` at any moment leaves no answer without its record."""

from __future__ import annotations

import itertools
import os
import random
from pathlib import Path

import pytest

from support.store.audit_kills import AuditKills

LINES = 1900
"""At least as many are executed for three questions; fewer would mean that they were not tried."""
STEP = int(os.environ.get("KILL_STEP", "40"))
"""Lines from one kill to the next in the long form, from a random one on; 1 tries them all, in half an hour."""


async def killed_at_random(home: Path, workspace: Path, rounds: int, seed: int) -> int:
    kills = AuditKills(home, workspace, seed)
    for _ in range(rounds):
        await kills.kill_at_random()
    return kills.answers


async def killed_at_lines(home: Path, workspace: Path, first: int, each: int) -> int:
    """Kill gateways before the line `first` and every `each` lines after it; how many were killed."""
    kills = AuditKills(home, workspace, sessions=1, questions=3)
    for line in itertools.count(first, each):
        if not await kills.kill_at_line(line):
            break
    assert kills.answers > 3
    return kills.round - 1


async def test_a_gateway_that_is_killed_while_questions_are_answered(home: Path, workspace: Path) -> None:
    assert await killed_at_random(home, workspace, 5, seed=7) > 20


async def test_a_gateway_that_is_killed_before_some_lines(home: Path, workspace: Path) -> None:
    assert await killed_at_lines(home, workspace, 50, 397) >= (LINES - 50) // 397


@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("seed", range(4))
async def test_a_gateway_that_is_killed_again_and_again(home: Path, workspace: Path, seed: int) -> None:
    assert await killed_at_random(home, workspace, 100, seed) > 1000


@pytest.mark.long
@pytest.mark.timeout(3000)
async def test_a_gateway_that_is_killed_before_any_line(home: Path, workspace: Path) -> None:
    first = random.SystemRandom().randint(1, STEP)
    assert await killed_at_lines(home, workspace, first, STEP) >= (LINES - first) // STEP, first
