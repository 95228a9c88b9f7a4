"""`kill -9` at random moments: nothing that a client saw is lost, nothing is doubled."""

from __future__ import annotations

from pathlib import Path

from support.fault_loop import FaultLoop


async def test_no_event_that_a_client_saw_is_lost_or_doubled_by_kill_9(home: Path, workspace: Path) -> None:
    loop = FaultLoop(home, workspace, seed=3)
    await loop.run(rounds=6)
    assert loop.events > 100
