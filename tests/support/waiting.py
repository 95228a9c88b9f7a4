"""Waiting for what no event tells of, such as the death of somebody else's child."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

INTERVAL = 0.01


async def until(predicate: Callable[[], object], timeout: float = 10.0) -> None:
    """Return as soon as the predicate holds; raise TimeoutError if it does not in time."""
    async with asyncio.timeout(timeout):
        while not predicate():
            await asyncio.sleep(INTERVAL)


def runs(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat[stat.rfind(b")") + 2 :][:1] not in (b"Z", b"X")


async def until_gone(pids: Iterable[int], timeout: float = 10.0) -> None:
    """Wait until none of the processes runs."""
    waiting = list(pids)
    try:
        await until(lambda: not any(runs(pid) for pid in waiting), timeout)
    except TimeoutError:
        left = {pid: Path(f"/proc/{pid}/cmdline").read_text() for pid in waiting if runs(pid)}
        raise AssertionError(f"still running: {left}") from None
