"""Bounded streams of events, and the back-pressure between them and the connection.

Rules:

- A stream with `FULL_EVENTS` events or `FULL_BYTES` bytes unread is full. The connection is not read while a stream is
  full and nothing on the connection is awaited: neither a reply nor an event of another stream.
- While something is awaited, the connection is read, since it may be the reader of the full stream itself that waits.
  A stream that reaches `MOST_BYTES` meanwhile fails with `StreamOverflow`; its session can be resumed after its last
  event.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from dragoman.client.errors import DragomanError, StreamOverflow
from dragoman.client.events import Event

FULL_EVENTS = 1024
FULL_BYTES = 4 * 1024 * 1024
MOST_BYTES = 64 * 1024 * 1024
"""What an unread stream may hold in memory."""
EVENT_BYTES = 500
"""What an event takes besides its message."""


class Flow:
    """Decides whether the connection is read."""

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._pause = pause
        self._resume = resume
        self._full = 0
        self._awaited = 0
        self.paused = False

    def full(self, change: int) -> None:
        self._full += change
        self._decide()

    def awaited(self, change: int) -> None:
        """A reply or an event is awaited (1), or is not any more (-1)."""
        self._awaited += change
        if self._full or self.paused:
            self._decide()

    def _decide(self) -> None:
        wanted = self._full > 0 and self._awaited == 0
        if wanted != self.paused:
            self.paused = wanted
            (self._pause if wanted else self._resume)()


class EventStream:
    """An async iterator of events for one reader; it ends with the session's connection, or when it is closed."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._events: deque[tuple[Event, int]] = deque()
        self._bytes = 0
        self._full = False
        self._ended = False
        self._error: DragomanError | None = None
        self._waiter: asyncio.Future[None] | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing more is added; what was added before can still be read."""
        return self._ended

    def put(self, event: Event, size: int) -> None:
        if self._ended:
            return
        size += EVENT_BYTES
        if self._bytes + size > MOST_BYTES and self._events:
            last = self._events[-1][0].seq
            self.end(
                StreamOverflow(
                    f"{len(self._events)} events wait unread: read them sooner, read this session over a "
                    f"connection of its own, or resume it after event {last}"
                )
            )
            return
        self._events.append((event, size))
        self._bytes += size
        self._note_fill()
        self._wake()

    def end(self, error: DragomanError | None = None) -> None:
        """Add nothing more; the reader gets `error` after the last event."""
        if not self._ended:
            self._ended, self._error = True, error
            self._note_fill()
            self._wake()

    def close(self) -> None:
        """Stop reading; what is unread is dropped."""
        self.end()
        self._events.clear()
        self._bytes = 0
        self._error = None
        self._note_fill()

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> Event:
        while not self._events:
            if self._ended:
                if self._error is not None:
                    raise self._error
                raise StopAsyncIteration
            await self._wait()
        event, size = self._events.popleft()
        self._bytes -= size
        self._note_fill()
        return event

    def take(self) -> list[Event]:
        """The events that are there now; they are read then."""
        events = [event for event, _ in self._events]
        self._events.clear()
        self._bytes = 0
        self._note_fill()
        return events

    async def _wait(self) -> None:
        if self._waiter is not None:
            raise RuntimeError("two tasks read one stream of events: open one stream for each")
        self._waiter = asyncio.get_running_loop().create_future()
        self._flow.awaited(1)
        try:
            await self._waiter
        finally:
            self._waiter = None
            self._flow.awaited(-1)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _note_fill(self) -> None:
        """Half of a limit must be free again before a full stream counts as one with room."""
        part = 2 if self._full else 1
        full = not self._ended and (
            len(self._events) * part >= FULL_EVENTS or self._bytes * part >= FULL_BYTES
        )
        if full != self._full:
            self._full = full
            self._flow.full(1 if full else -1)
