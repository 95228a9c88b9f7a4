"""Links between simulated processes, whose messages arrive some turns of the loop later, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import TypeVar

from dragoman.rpc.link import LinkHandler
from dragoman.wire import limits
from support.simulation.loop import SimulatedLoop

L = TypeVar("L", bound="SimulatedLink")


class SimulatedLink:
    """Implements `Link`: one end of a connection."""

    def __init__(self, loop: SimulatedLoop, handler: LinkHandler, context: Context) -> None:
        self.loop = loop
        self.handler = handler
        self.context = context
        self.other: SimulatedLink = self
        self.sent: Callable[[bytes], None] = lambda message: None
        """Called with each message as it is sent."""
        self.read: Callable[[bytes], None] = lambda message: None
        """Called with each message as it is read."""
        self._arrived: deque[bytes] = deque()
        self._size = 0
        self._paused = False
        self._scheduled = False
        self._congested = False
        self._ending = False
        self.ended = False

    def send(self, message: bytes) -> None:
        other = self.other
        if self._ending or other.ended:
            return
        self.sent(message)
        other._arrived.append(message)
        other._size += len(message)
        if other._size > limits.WRITE_HIGH_WATER and not other._congested:
            other._congested = True
            self.handler.link_writable(False)
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
            self.other._schedule()

    @property
    def backlog(self) -> int:
        return self.other._size

    def _schedule(self) -> None:
        if not self._scheduled and not self.ended:
            self._scheduled = True
            self.loop.after_turns(self.loop.delay(), self._deliver, self.context)

    def _deliver(self) -> None:
        self._scheduled = False
        if self.ended or self._paused:
            return
        if self._arrived and not self._ending:
            frames = list(self._arrived)
            self._arrived.clear()
            self._size = 0
            for frame in frames:
                self.read(frame)
            self.handler.link_messages([*frames])
            if self._congested:
                self._congested = False
                self.other.loop.call_soon(self.other.handler.link_writable, True, context=self.other.context)
        if self._ending or (self.other._ending and not self._arrived):
            self.ended = True
            self.handler.link_closed(None)
            self.other.close()


def connect(
    loop: SimulatedLoop,
    one: tuple[LinkHandler, Context],
    other: tuple[LinkHandler, Context],
    kind: type[L],
) -> tuple[L, SimulatedLink]:
    """Connect two handlers; the first link, of class `kind`, sends to `other`, the second to `one`."""
    first, second = kind(loop, *one), SimulatedLink(loop, *other)
    first.other, second.other = second, first
    one[1].copy().run(one[0].link_opened, first)
    other[1].copy().run(other[0].link_opened, second)
    return first, second
