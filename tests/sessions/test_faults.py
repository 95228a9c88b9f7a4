"""`kill -9` at random moments: nothing that a client saw is lost, nothing is doubled."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.store.kill_loop import KillLoop


@pytest.mark.parametrize("seed", range(3, 9))
async def test_no_event_that_a_client_saw_is_lost_or_doubled_by_kill_9(
    home: Path, workspace: Path, seed: int
) -> None:
    loop = KillLoop(home, workspace, seed)
    await loop.run(rounds=5)
    assert loop.events > 100
