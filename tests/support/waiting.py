"""Waiting for what raises no event, such as the end of another process's child."""

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


class StoppedWriting:
    """True once a process has written something and then nothing more for many looks in a row."""

    LOOKS = 30

    def __init__(self, pid: int) -> None:
        self._path = Path(f"/proc/{pid}/io")
        self._first = self._last = self._written()
        self._same = 0

    def __call__(self) -> bool:
        written = self._written()
        self._same = self._same + 1 if written == self._last else 0
        self._last = written
        return written > self._first and self._same >= self.LOOKS

    def _written(self) -> int:
        return int(self._path.read_text().partition("wchar: ")[2].split()[0])


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
