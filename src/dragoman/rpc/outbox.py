"""The single writer of a byte stream (G-004): joins the messages of one loop turn into one write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dragoman.wire import limits
from dragoman.wire.framing import join_lines


class Outbox:
    """Joins messages into one write per loop turn and reports when the peer falls behind."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_writable: Callable[[bool], None]) -> None:
        self._loop = loop
        self._on_writable = on_writable
        self._transport: asyncio.WriteTransport | None = None
        self._join: Callable[[list[bytes]], bytes] = join_lines
        self._parts: list[bytes] = []
        self._queued = 0
        self._scheduled = False
        self._closing = False
        self.written = 0
        """Bytes handed to the transport so far."""

    def attach(self, transport: asyncio.WriteTransport) -> None:
        """Start writing; messages sent earlier go first."""
        self._transport = transport
        transport.set_write_buffer_limits(high=limits.WRITE_HIGH_WATER, low=limits.WRITE_LOW_WATER)
        if self._closing:  # closed before the stream was connected
            self.flush()
            transport.close()
        else:
            self._schedule()

    def use_framing(self, join: Callable[[list[bytes]], bytes]) -> None:
        """Set the function that frames and joins the messages of one loop turn."""
        self._join = join

    @property
    def backlog(self) -> int:
        buffered = self._transport.get_write_buffer_size() if self._transport is not None else 0
        return self._queued + buffered

    def send(self, message: bytes) -> None:
        if self._closing:
            return
        self._parts.append(message)
        self._queued += len(message)
        if not self._scheduled:
            self._schedule()
        elif self._queued > limits.WRITE_HIGH_WATER:
            self.flush()  # a flood within one turn: write early so that back-pressure begins early

    def send_all(self, messages: list[bytes]) -> None:
        """Queue many messages in one call, which is cheaper than one by one."""
        if self._closing:
            return
        self._parts += messages
        self._queued += sum(map(len, messages))
        if not self._scheduled:
            self._schedule()
        if self._queued > limits.WRITE_HIGH_WATER:
            self.flush()

    def flush(self) -> None:
        """Write the queued messages now; normally called by the loop itself."""
        self._scheduled = False
        transport = self._transport
        if transport is None or not self._parts:
            return
        parts, self._parts = self._parts, []
        self._queued = 0
        if not transport.is_closing():
            data = self._join(parts)
            self.written += len(data)
            transport.write(data)

    def stop(self) -> None:
        """Write the queued messages and take no more; the stream stays open, the caller closes it."""
        self.flush()
        self._closing = True

    def close(self) -> None:
        """Write the queued messages, then close the stream."""
        if self._closing:
            return
        self._closing = True
        self.flush()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.close()

    def pause_writing(self) -> None:
        """Forwarded from the asyncio protocol."""
        self._on_writable(False)

    def resume_writing(self) -> None:
        self._on_writable(True)

    def _schedule(self) -> None:
        self._scheduled = True
        self._loop.call_soon(self.flush)
