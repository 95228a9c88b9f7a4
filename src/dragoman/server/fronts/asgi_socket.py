"""WebSockets on hypercorn: inside HTTP/2 (RFC 8441), or on a connection after other requests.

hypercorn handles the frames, one at a time. All other WebSockets use the faster `fronts.websocket`.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Callable

from dragoman.rpc.link import Unpaused
from dragoman.rpc.loop_budget import loop_budget
from dragoman.server import limits
from dragoman.server.asgi import Receive, Response, Send, header_bytes
from dragoman.server.fronts.fronts import Speaker
from dragoman.server.fronts.websocket import (
    NORMAL,
    OVERLOAD,
    PROTOCOL_ERROR,
    RESTART,
    is_initialize,
    is_noise,
)
from dragoman.wire.framing import single_line
from dragoman.wire.limits import FRAMES_AT_ONCE

log = logging.getLogger(__name__)

HELD_COST = 64
"""Bytes that are counted for each held message in addition to its length."""


class AsgiSocket(Unpaused):
    """Implements `Link`."""

    def __init__(
        self, speaker: Speaker, receive: Receive, send: Send, *, restarting: Callable[[], bool]
    ) -> None:
        self.backlog = 0
        self._handler = speaker.handler
        self._receive = receive
        self._send = send
        self._restarting = restarting
        self._queue: deque[bytes] = deque()
        self._held: deque[bytes] = deque()
        """Messages received while the peer's backlog is too long; handled once the peer has read."""
        self._held_bytes = 0
        self._wake = asyncio.Event()
        self._closing: tuple[int, str] | None = None
        self._congested = False
        self._waits_for_initialize = speaker.initialize_first

    async def run(self, *cookies: tuple[str, str], subprotocol: str | None = None) -> None:
        """Accept the handshake and run the socket to its end."""
        named = [
            (b"acp-connection-id", secrets.token_urlsafe(24).encode()),
            *((name.encode(), value.encode()) for name, value in cookies),
        ]
        await self._send({"type": "websocket.accept", "headers": named, "subprotocol": subprotocol})
        self._handler.link_opened(self)
        reading = asyncio.ensure_future(self._read())
        reading.add_done_callback(lambda _: self._wake.set())
        try:
            await self._write(reading)
        except TimeoutError:
            log.info("websocket peer reads nothing, cutting it off", extra={"bytes": self.backlog})
        finally:
            reading.cancel()
            self._handler.link_closed(None)

    # -- Link

    def send(self, message: bytes) -> None:
        if self._closing is None:
            self._queue.append(message)
            self._changed(len(message))
            self._wake.set()

    def close(self) -> None:
        self.close_with(RESTART if self._restarting() else NORMAL)

    def close_with(self, code: int, reason: str = "") -> None:
        """Close after the queued messages are sent."""
        if self._closing is None:
            self._closing = (code, reason)
            self._wake.set()

    # -- the two directions

    async def _write(self, reading: asyncio.Future[None]) -> None:
        while not reading.done():
            while self._queue or self._may_go_on:
                if self._queue:
                    message = self._queue.popleft()
                    async with asyncio.timeout(limits.STALL_TIMEOUT):
                        await self._send({"type": "websocket.send", "text": message.decode()})
                    self._changed(-len(message))
                if self._may_go_on:
                    self._release()
                    await loop_budget().wait_if_spent()
            if self._closing is not None:
                code, reason = self._closing
                await self._send({"type": "websocket.close", "code": code, "reason": reason})
                return
            self._wake.clear()
            if not self._queue and self._closing is None and not reading.done():
                await self._wake.wait()

    async def _read(self) -> None:
        while (event := await self._receive())["type"] != "websocket.disconnect":
            text = event.get("text")
            if text is not None and self._closing is None:  # binary frames are ignored (G-128)
                self._hear(single_line(text.encode()))

    def _hear(self, message: bytes) -> None:
        """Handle a message, or hold it while the peer does not read: hypercorn's own queue is unbounded."""
        if self._held_bytes > limits.MAX_SOCKET_BACKLOG:
            log.info("websocket peer asks and does not read, closing", extra={"bytes": self.backlog})
            self._queue.clear()
            self._held.clear()
            self.close_with(OVERLOAD, "read what you asked for")
        elif self._held or self.backlog > limits.MAX_SOCKET_BACKLOG:
            self._held.append(message)
            self._held_bytes += len(message) + HELD_COST
        else:
            self._take(message)

    @property
    def _may_go_on(self) -> bool:
        """Whether a message is held and there is room for its response."""
        return bool(self._held) and self._closing is None and self.backlog <= limits.MAX_SOCKET_BACKLOG

    def _release(self) -> None:
        """Handle some of the held messages, not thousands at once."""
        for _ in range(FRAMES_AT_ONCE):
            if not self._may_go_on:
                return
            message = self._held.popleft()
            self._held_bytes -= len(message) + HELD_COST
            self._take(message)

    def _take(self, message: bytes) -> None:
        if self._waits_for_initialize and not is_noise(message):
            if not is_initialize(message):
                self.close_with(PROTOCOL_ERROR, "the first message must be initialize")
                return
            self._waits_for_initialize = False
        self._handler.link_messages([message])

    def _changed(self, size: int) -> None:
        self.backlog += size
        congested = self.backlog > limits.SOCKET_BYTES
        if congested != self._congested:
            self._congested = congested
            self._handler.link_writable(not congested)


async def refuse(send: Send, response: Response) -> None:
    """Refuse the handshake with an HTTP response."""
    headers = [(name.encode(), header_bytes(value)) for name, value in response.all_headers()]
    await send({"type": "websocket.http.response.start", "status": response.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": response.body})
