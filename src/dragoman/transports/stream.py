"""A client on a byte stream: sockets directly, pipes through `stdio`."""

from __future__ import annotations

import asyncio
from typing import cast

from dragoman.rpc.link import LinkHandler
from dragoman.rpc.outbox import Outbox
from dragoman.wire import limits
from dragoman.wire.framing import ClientDecoder, join_headers


class StreamLink(asyncio.Protocol):
    """Implements `Link`: NDJSON or Content-Length, detected from the client's first bytes (G-141)."""

    def __init__(self, handler: LinkHandler, max_bytes: int, *, strict_start: bool = False) -> None:
        self._handler = handler
        self._decoder = ClientDecoder(max_bytes, strict_start=strict_start)
        self._outbox = Outbox(asyncio.get_running_loop(), handler.link_writable)
        self.send = self._outbox.send  # no wrapper method: every update passes here
        self.send_all = self._outbox.send_all
        self.flush = self._outbox.flush
        self._reader: asyncio.ReadTransport | None = None
        self._paused = False
        self._congested = False
        self._choked = False
        """The client does not read its responses, so nothing is read from it until it has caught up."""
        self._waits = False
        self._ended = False
        self.closed = asyncio.Event()
        """Set when nothing more can be written."""
        handler.link_opened(self)

    # -- Link

    def pause(self) -> None:
        self._paused = True
        self._read_or_wait()

    def resume(self) -> None:
        self._paused = False
        self._read_or_wait()

    def _read_or_wait(self) -> None:
        waits = self._paused or self._choked
        if self._reader is None or waits == self._waits or self._reader.is_closing():
            return
        self._waits = waits
        if waits:
            self._reader.pause_reading()
        else:
            self._reader.resume_reading()

    def close(self) -> None:
        self._outbox.close()

    @property
    def backlog(self) -> int:
        return self._outbox.backlog

    # -- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._reader = cast("asyncio.ReadTransport", transport)
        self._outbox.attach(cast("asyncio.WriteTransport", transport))

    def data_received(self, data: bytes) -> None:
        frames = self._decoder.feed(data)
        if self._decoder.headers:
            self._outbox.use_framing(join_headers)
        if frames:
            self._handler.link_messages(frames)
        if self._congested and not self._choked and self.backlog > limits.CLIENT_BACKLOG_BYTES:
            self._choked = True
            self._read_or_wait()

    def eof_received(self) -> bool:
        """The client sends nothing more; it may still read."""
        self._end(None)
        return True

    def connection_lost(self, error: Exception | None) -> None:
        self.closed.set()
        self._end(str(error) if error is not None else None)

    def pause_writing(self) -> None:
        self._congested = True
        self._outbox.pause_writing()

    def resume_writing(self) -> None:
        self._congested = self._choked = False
        self._read_or_wait()
        self._outbox.resume_writing()

    def _end(self, reason: str | None) -> None:
        if not self._ended:
            if not self._decoder.headers:
                self.data_received(b"\n")  # a last line without a line feed is a message too
            self._ended = True
            self._handler.link_closed(reason)
