"""hypercorn 0.18's streams, one request or one WebSocket each, hardened against harmful peers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

from hypercorn.protocol import http_stream, ws_stream
from hypercorn.protocol.events import Body, Data, EndData, Event, StreamClosed
from hypercorn.typing import ASGISendEvent
from wsproto.connection import ConnectionState
from wsproto.events import BytesMessage, CloseConnection, Message, Ping, Pong, TextMessage
from wsproto.frame_protocol import CloseReason

from dragoman.rpc.loop_budget import loop_budget
from dragoman.rpc.rate_limit import RateLimit
from dragoman.rpc.websocket import CLOSE_TIMEOUT
from dragoman.wire import limits

log = logging.getLogger(__name__)

AT_ONCE = 16
"""Body pieces or frames read between two looks at the clock; hypercorn is slow for each."""


class FairHttpStream(http_stream.HTTPStream):
    """Reads a body within the turn budget: it may arrive in pieces of one byte."""

    _pieces = 0

    async def handle(self, event: Event) -> None:
        if isinstance(event, Body):
            self._pieces += 1
            if not self._pieces % AT_ONCE:
                await loop_budget().wait_if_spent()
        await super().handle(event)


class FairWebSocketStream(ws_stream.WSStream):
    """Protects hypercorn's WebSocket from one greedy peer, as `rpc.websocket` does.

    - frames are read within the turn budget; too many without content close the socket (a connection may have others)
    - a peer that answers no ping is disconnected
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._loop = asyncio.get_running_loop()
        self._heard = self._loop.time()
        self._frames = 0
        self._idle_frames = RateLimit(limits.IDLE_FRAMES, limits.IDLE_FRAMES_WITHIN)
        self._refused = False
        self._over = asyncio.Event()

    async def handle(self, event: Event) -> None:
        if isinstance(event, Body | Data):
            self._heard = self._loop.time()
            if self._refused:
                return
        await super().handle(event)
        if self.closed:
            self._over.set()

    async def app_send(self, message: ASGISendEvent | None) -> None:
        if message is None and self._refused and not self.closed:
            with contextlib.suppress(TimeoutError):  # a peer that reads nothing gets no close frame
                async with asyncio.timeout(CLOSE_TIMEOUT):
                    await self.send(EndData(stream_id=self.stream_id))  # waits until the close frame has left
        await super().app_send(message)

    async def _handle_events(self) -> None:
        for event in self.connection.events():
            if self.closed or self._refused:
                return
            if _says_nothing(event) and not self._idle_frames.take():
                log.info("websocket peer sends too many frames that say nothing, closing")
                await self._refuse(CloseReason.POLICY_VIOLATION, "too many pings or fragments")
                return
            if isinstance(event, Message):
                await self._take(event)
            elif isinstance(event, Ping):
                await self._send_wsproto_event(event.response())
            elif isinstance(event, CloseConnection):
                if self.connection.state == ConnectionState.REMOTE_CLOSING:
                    await self._send_wsproto_event(event.response())
                await self.send(StreamClosed(stream_id=self.stream_id))
            self._frames += 1
            if not self._frames % AT_ONCE:
                await loop_budget().wait_if_spent()

    async def _take(self, event: Message[Any]) -> None:
        try:
            self.buffer.extend(event)
        except ws_stream.FrameTooLargeError:
            await self._refuse(CloseReason.MESSAGE_TOO_BIG)
            return
        if event.message_finished:
            assert self.app_put is not None
            await self.app_put(self.buffer.to_message())
            self.buffer.clear()

    async def _refuse(self, code: CloseReason, reason: str = "") -> None:
        """Send a close frame and end the application; later frames are dropped."""
        self._refused = True
        await self._send_wsproto_event(CloseConnection(code=code, reason=reason))
        if self.app_put is not None:
            await self.app_put({"type": "websocket.disconnect", "code": code.value, "reason": reason})

    async def _send_pings(self) -> None:
        interval = self.config.websocket_ping_interval
        assert interval is not None
        while not self.closed:
            silence = self._loop.time() - self._heard
            if silence > 2 * interval:
                log.info("websocket peer is silent for %d s, closing", silence)
                await self.send(StreamClosed(stream_id=self.stream_id))
                return
            await self._send_wsproto_event(Ping())
            # Not a sleep: the connection ends only when all its tasks have ended.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), interval)


def _says_nothing(event: object) -> bool:
    """Whether a frame has no content, as in `rpc.websocket`."""
    if isinstance(event, TextMessage):
        return (
            event.frame_finished
            and not event.message_finished
            and len(event.data) < limits.TINY_FRAGMENT_BYTES
        )
    return isinstance(event, Ping | Pong | BytesMessage)
