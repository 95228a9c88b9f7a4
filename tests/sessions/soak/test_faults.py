"""The fault loop in full: 200 times `kill -9` while eight sessions stream."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.fault_loop import FaultLoop

pytestmark = pytest.mark.soak

SEEDS = range(1000, 1020)
ROUNDS = 10
"""For each seed: a replay grows with every round, and all of it is compared each time."""


@pytest.mark.parametrize("seed", SEEDS)
async def test_no_event_that_a_client_saw_is_lost_or_doubled_by_kill_9(
    home: Path, workspace: Path, seed: int
) -> None:
    await FaultLoop(home, workspace, seed).run(ROUNDS)
