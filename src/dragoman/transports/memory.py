"""A connection inside one process: two links, each of which delivers to the other's handler."""

from __future__ import annotations

import asyncio
from collections import deque

from dragoman.rpc.link import LinkHandler
from dragoman.wire import limits


class MemoryLink:
    """Implements `Link`; messages reach the other end's handler in a later turn of the loop."""

    def __init__(self, handler: LinkHandler) -> None:
        self._handler = handler
        self._loop = asyncio.get_running_loop()
        self._other: MemoryLink = self
        self._arrived: deque[bytes] = deque()
        self._size = 0
        self._paused = False
        self._scheduled = False
        self._congested = False
        self._ending = False
        self._ended = False

    def send(self, message: bytes) -> None:
        other = self._other
        if self._ending or other._ended:
            return
        other._arrived.append(message)
        other._size += len(message)
        if other._size > limits.WRITE_HIGH_WATER and not other._congested:
            other._congested = True
            self._handler.link_writable(False)
        other._schedule()

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._schedule()

    def close(self) -> None:
        if not self._ending:
            self._ending = True
            self._schedule()
            self._other._schedule()

    @property
    def backlog(self) -> int:
        return self._other._size

    def _schedule(self) -> None:
        if not self._scheduled and not self._ended:
            self._scheduled = True
            self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        self._scheduled = False
        if self._ended or self._paused:
            return
        if self._arrived and not self._ending:
            frames = list(self._arrived)
            self._arrived.clear()
            self._size = 0
            self._handler.link_messages([*frames])
            self._relieve()
        if self._ending or (self._other._ending and not self._arrived):
            self._ended = True
            self._handler.link_closed(None)
            self._other.close()

    def _relieve(self) -> None:
        if self._congested and self._size < limits.WRITE_LOW_WATER:
            self._congested = False
            self._other._handler.link_writable(True)


def connect(one: LinkHandler, other: LinkHandler) -> tuple[MemoryLink, MemoryLink]:
    """Connect two handlers; the first link sends to `other`, the second to `one`."""
    first, second = MemoryLink(one), MemoryLink(other)
    first._other, second._other = second, first
    one.link_opened(first)
    other.link_opened(second)
    return first, second
