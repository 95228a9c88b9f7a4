"""Which sessions this process is about to close, unload or delete: loads of them wait, or fail."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

CLOSED = "_dragoman/closed"
"""Notification to a process that follows a session: it was closed, and clients there have to load it again."""


class Closing:
    def __init__(self) -> None:
        self.deleting: set[str] = set()
        """Sessions that are being deleted: they must not be loaded again meanwhile."""
        self.releases: dict[str, asyncio.Task[None]] = {}
        """By session that left memory: the task that releases it."""
        self._ending: Counter[str] = Counter()
        self._some_ended = asyncio.Event()

    @contextmanager
    def ending(self, session_id: str) -> Iterator[None]:
        """While a session is being closed: a load of it waits, and then makes it live again."""
        self._ending[session_id] += 1
        try:
            yield
        finally:
            self._ending[session_id] -= 1
            if not self._ending[session_id]:
                del self._ending[session_id]
                self._some_ended.set()

    def has(self, session_id: str) -> bool:
        return session_id in self._ending or session_id in self.releases

    async def wait_over(self, session_id: str) -> None:
        """Wait while this process closes or unloads a session."""
        while self.has(session_id):
            self._some_ended.clear()
            await self._some_ended.wait()

    async def wait_released(self, session_id: str) -> None:
        """Wait until a session that left memory is released, even if this is called twice."""
        release = self.releases.get(session_id)
        if release is not None:
            await asyncio.shield(release)
