"""One event stream (SSE) and the queue for its reader.

Every event has an id, so that a reader that reconnects with `Last-Event-ID` gets exactly what it missed:

    17             an update: its number in the session's journal; later updates are read from the journal again
    17.3-5f0c91ab  another message (a response, a question): the third of this stream, sent when 17 was the last update;
                   this count ends with the gateway, or with the stream, so the id names the stream too
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from dragoman.rpc.call import happens
from dragoman.server import limits
from dragoman.wire.framing import single_line

Taken = Callable[[], None]

_ID = re.compile(r"(\d{1,15})(?:\.(\d{1,15})-([0-9a-f]{8}))?", re.ASCII)

WRITE_BYTES = 256 * 1024
"""Bytes after which one write ends."""


@dataclass(frozen=True, slots=True)
class KeptMessage:
    """A message that is not in the journal, stored for a reader that reconnects."""

    after: int
    """Number of the last update before the message."""
    number: int
    event: bytes


class EventStream:
    """Implements `Outlet`."""

    def __init__(self, on_change: Callable[[int], None], keep: int = limits.KEPT_MESSAGES) -> None:
        """`on_change` is called with the change of the queued bytes; `keep` messages can be sent again."""
        self._on_change = on_change
        self.on_room: Callable[[], None] | None = None
        """Called when a reader has read enough for more to be sent."""
        self.opened = False
        """The stream has had a reader."""
        self.closed = False
        self.on_detached: Callable[[], None] | None = None
        """Called when the session sends nothing more here."""
        self.backlog = 0
        self._queue: deque[tuple[bytes, Taken | None]] = deque()
        self._wake = asyncio.Event()
        self._name = secrets.token_hex(4)
        self._seq = 0
        self._number = 0
        self._kept: deque[KeptMessage] = deque(maxlen=keep)
        self._kept_bytes = 0
        self._full = False
        self._readers = 0
        self._reader = 0

    # -- writing

    def send(self, message: bytes) -> None:
        """Send a message that is not a journaled update."""
        self._number += 1
        line = single_line(message)
        event = b"id: %d.%d-%b\ndata: %b\n\n" % (self._seq, self._number, self._name.encode(), line)
        self._keep(KeptMessage(self._seq, self._number, event))
        self._put(event)

    def _keep(self, kept: KeptMessage) -> None:
        if not self._kept.maxlen:
            return
        if len(self._kept) == self._kept.maxlen:
            self._kept_bytes -= len(self._kept[0].event)
        self._kept.append(kept)
        self._kept_bytes += len(kept.event)
        while self._kept_bytes > limits.KEPT_BYTES and len(self._kept) > 1:
            self._kept_bytes -= len(self._kept.popleft().event)

    def send_event(self, seq: int, message: bytes) -> None:
        """Send an update together with its number in the journal."""
        self._seq = seq
        # Journals of former versions may contain carriage returns, each of which would end the line.
        self._put(b"id: %d\ndata: %b\n\n" % (seq, single_line(message)))

    def send_again(self, kept: KeptMessage) -> None:
        self._put(kept.event)

    def when_taken(self, action: Taken) -> None:
        """Run `action` when everything queued so far was passed to a reader."""
        if not self._queue:
            action()
        else:
            self._queue.append((b"", action))

    @property
    def writable(self) -> bool:
        return self.backlog < (limits.STREAM_BYTES if self.opened else limits.UNREAD_STREAM_BYTES)

    def _put(self, event: bytes) -> None:
        if self.closed:
            return
        self._queue.append((event, None))
        self.backlog += len(event)
        if not self.writable:
            self._full = True
        self._wake.set()
        self._on_change(len(event))

    # -- reading

    @property
    def occupied(self) -> bool:
        return self._reader != 0

    def occupy(self) -> int:
        """Begin to read, in place of any other reader; returns the reader's number for `is_held_by` and `vacate`."""
        self.opened = True
        self._readers += 1
        self._reader = self._readers
        self.wake()
        return self._readers

    def displace(self) -> None:
        """End the present reader, whose connection is lost without notice."""
        self._reader = 0
        self.wake()

    def is_held_by(self, reader: int) -> bool:
        return self._reader == reader

    def vacate(self, reader: int) -> None:
        if self._reader == reader:
            self._reader = 0

    def missed(self, last_id: str) -> tuple[int, list[KeptMessage]] | None:
        """The last update of a reader that reconnects, and the other messages it lacks; None for an invalid id.

        A reader of an earlier stream of the same session lacks all stored messages.
        """
        found = _ID.fullmatch(last_id)
        if found is None:
            return None
        seq, number = int(found[1]), self._number_of(last_id)
        if number is not None:
            return seq, [kept for kept in self._kept if kept.number > number]
        if found[2] is not None or not self.opened:
            return seq, list(self._kept)
        return seq, [kept for kept in self._kept if kept.after >= seq]

    def sent(self, last_id: str) -> bool:
        """Whether this is the id of an unjournaled message of this stream."""
        return self._number_of(last_id) is not None

    def keeps_all_after(self, last_id: str) -> bool:
        """Whether every message after this one is still stored."""
        number = self._number_of(last_id)
        oldest = self._kept[0].number if self._kept else self._number + 1
        return number is not None and oldest - 1 <= number

    def _number_of(self, last_id: str) -> int | None:
        found = _ID.fullmatch(last_id)
        ours = found is not None and found[3] == self._name and int(found[2]) <= self._number
        return int(found[2]) if found is not None and ours else None

    def drop(self) -> None:
        """Discard the queue: its messages will be sent again."""
        while self._queue:
            self.take()

    def take(self) -> bytes:
        """Remove and return queued events for one write."""
        taken: list[bytes] = []
        size = 0
        while self._queue and size < WRITE_BYTES:
            event, action = self._queue.popleft()
            taken.append(event)
            size += len(event)
            if action is not None:
                action()
        if not self._queue:
            self._wake.clear()
        self.backlog -= size
        self._on_change(-size)
        return b"".join(taken)

    def relieve(self) -> None:
        """After a write: call `on_room` if the stream was full and has room again."""
        if self._full and self.writable:
            self._full = False
            if self.on_room is not None:
                self.on_room()

    async def wait(self, timeout: float) -> bool:
        """Wait for events or the end of the stream; False after `timeout`."""
        return await happens(self._wake, timeout)

    def wake(self) -> None:
        self._wake.set()

    def detached(self) -> None:
        """Called when the session detaches; the stream stays open for responses about it."""
        if self.on_detached is not None:
            self.on_detached()

    def close(self) -> None:
        """End the stream after the queued events are read."""
        self.closed = True
        self._wake.set()
