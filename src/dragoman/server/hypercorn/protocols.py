"""hypercorn 0.18's protocols, hardened against harmful peers. Each class lists its corrections."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

import h11
from h2.errors import ErrorCodes
from h2.events import DataReceived, Event, PriorityUpdated, RequestReceived, StreamReset
from h2.exceptions import ProtocolError
from hypercorn import protocol
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.events import Closed, RawData, Updated
from hypercorn.events import Event as HypercornEvent
from hypercorn.protocol import h2, ws_stream
from hypercorn.protocol import h11 as hypercorn_h11
from hypercorn.protocol.events import Data, Response, StreamClosed
from hypercorn.protocol.events import Event as StreamEvent
from hypercorn.protocol.h11 import H2ProtocolAssumedError, H11Protocol

from dragoman.rpc.loop_budget import loop_budget
from dragoman.server import limits
from dragoman.server.asgi import SECURITY_HEADERS
from dragoman.server.hypercorn.h2_frames import FrameGate, Refused
from dragoman.server.hypercorn.streams import FairHttpStream, FairWebSocketStream
from dragoman.server.hypercorn.strict_h11 import strict_connection

log = logging.getLogger(__name__)

FRAMES_AT_ONCE = 1
"""HTTP/2 frames read between two looks at the clock."""


def install() -> None:
    """Replace hypercorn's classes with these; hypercorn has no option for it."""
    h2.StreamBuffer = BoundedBuffer  # type: ignore[misc]
    protocol.H2Protocol = PatientH2  # type: ignore[attr-defined, assignment]
    protocol.H11Protocol = PlainH11  # type: ignore[attr-defined, assignment]
    for module in (h2, hypercorn_h11):
        module.HTTPStream = FairHttpStream  # type: ignore[attr-defined]
        module.WSStream = FairWebSocketStream  # type: ignore[attr-defined]
    ws_stream.server_extensions_handshake = no_extensions  # type: ignore[attr-defined]


def no_extensions(requested: object, supported: object) -> None:
    """Refuse compression, which hypercorn always accepts: a few bytes could become gigabytes before any limit."""


class BoundedBuffer(h2.StreamBuffer):
    """Resumes the writer only when little is left in the buffer.

    The original resumes it whenever little was read, so the buffer for a peer that reads nothing grows without end.
    """

    _at_once = 0

    async def push_at_once(self, data: bytes) -> None:
        """Append without waiting for room, up to a limit; not every ping needs its own pong (RFC 6455 §5.5.3)."""
        if not self._complete and self._at_once < limits.UNREAD_PONG_BYTES:
            self._at_once += len(data)
            self.buffer.extend(data)
            await self._is_empty.clear()

    async def pop(self, max_length: int) -> bytes:
        data = bytes(self.buffer[:max_length])
        del self.buffer[: len(data)]
        if len(self.buffer) < h2.BUFFER_LOW_WATER:
            await self._paused.set()
        if not self.buffer:
            self._at_once = 0
            await self._is_empty.set()
        return data


class Context(WorkerContext):
    """State shared by all connections."""

    stopping = False
    """The gateway is shutting down: no connection stays open for another request."""


class PlainH11(H11Protocol):
    """HTTP/1.1 without upgrade to HTTP/2 inside a connection (dropped by RFC 9113); errors have the usual headers.

    - requests are read strictly (`strict_h11`)
    - a connection that will end, because its request was answered before all of it arrived or because the gateway is
      shutting down, sends `connection: close`: otherwise its peer would reuse it
    - each pipelined request waits for a loop turn: it costs more than the frames of a flood
    """

    context: Context
    _sent_ahead = False

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.connection = strict_connection(limits.MAX_HEAD_BYTES)

    async def _check_protocol(self, event: h11.Request) -> None:
        preface = (event.method, event.target, event.http_version) == (b"PRI", b"*", b"2.0")
        if preface and not self.keep_alive_requests:
            raise H2ProtocolAssumedError(b"PRI * HTTP/2.0\r\n\r\n" + self.connection.trailing_data[0])

    async def _maybe_recycle(self) -> None:
        await super()._maybe_recycle()
        if isinstance(self.connection, h11.Connection):
            self._sent_ahead = bool(self.connection.trailing_data[0])

    async def _create_stream(self, request: h11.Request) -> None:
        if self._sent_ahead:
            await loop_budget().wait_next_turn()
        # h11 limits only incomplete headers; headers that arrive in one read may be of any length.
        if sum(len(name) + len(value) for name, value in request.headers) > limits.MAX_HEAD_BYTES:
            await self._refuse(431)
        elif not request.http_version.startswith(b"1."):
            await self._refuse(400)
        else:
            await super()._create_stream(request)

    async def _refuse(self, status: int) -> None:
        await self._send_error_response(status)
        await self.send(Closed())

    async def stream_send(self, event: StreamEvent) -> None:
        event = _with_headers(event)
        last = self.connection.their_state is h11.SEND_BODY or getattr(self.context, "stopping", False)
        if last and isinstance(event, Response) and event.status_code >= 200:
            event = replace(event, headers=[*event.headers, (b"connection", b"close")])
        await super().stream_send(event)

    async def _send_error_response(self, status_code: int) -> None:
        headers = [(b"content-length", b"0"), (b"connection", b"close"), *_SECURE]
        await self._send_h11_event(h11.Response(status_code=status_code, headers=headers))
        await self._send_h11_event(h11.EndOfMessage())


class PatientH2(h2.H2Protocol):
    """HTTP/2 in which one bad request or late frame does not fail all streams of the connection.

    - the rest of an answered request's body is dropped, as the peer may still be sending it
    - a request without a readable path is reset; priorities, which RFC 9113 dropped, are ignored: their tree fills up
    - frames are read within the turn budget, and too many cheap ones end the connection (`h2_frames`)
    - a connection is idle until its first request, and when the peer has reset the last open one
    - a response that ends before it is complete is reset, and its buffered data is freed
    - a WebSocket pong does not wait for buffer room: the reader would wait for a window update that only it can read
    """

    _reader: asyncio.Task[object] | None = None
    _ended = False

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._gate = FrameGate()
        self._budget = loop_budget()

    async def initiate(self, *arguments: Any) -> None:
        await super().initiate(*arguments)
        await self.send(Updated(idle=True))  # reading the first line as HTTP/1.1 had stopped the idle timeout

    async def handle(self, event: HypercornEvent) -> None:
        if not isinstance(event, RawData):
            await super().handle(event)
            return
        if self._ended:
            return
        self._reader = asyncio.current_task()
        try:
            self._gate.receive(event.data)
            while not self._ended and (frames := self._gate.take(FRAMES_AT_ONCE)) is not None:
                events = self.connection.receive_data(frames)
                await self._handle_events(events)
                if any(isinstance(frame_event, RequestReceived) for frame_event in events):
                    await self._budget.wait_next_turn()
                else:
                    await self._budget.wait_if_spent()
        except Refused as refused:
            log.info("http/2 peer sends %s, closing", refused)
            await self._end(refused.code)
        except ProtocolError:
            await self._end(None)

    async def _end(self, code: ErrorCodes | None) -> None:
        """Close the connection; `code` is None when GOAWAY is queued already."""
        if code is not None:
            await self.say_goodbye(code)
        self._ended = True
        await self._flush()
        await self.send(Closed())

    async def say_goodbye(self, code: ErrorCodes = ErrorCodes.NO_ERROR) -> None:
        """Send GOAWAY: the peer learns which requests were not processed, and may send them elsewhere."""
        try:
            self.connection.close_connection(code)
        except ProtocolError:
            return  # already sent
        await self._flush()

    async def _handle_events(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, DataReceived) and event.stream_id not in self.streams:
                self._acknowledge(event)
            elif isinstance(event, RequestReceived) and not _readable(event):
                self._gate.refused_stream()
                self._reset(event.stream_id, ErrorCodes.PROTOCOL_ERROR)
            elif not isinstance(event, PriorityUpdated):
                await super()._handle_events([event])
            if isinstance(event, StreamReset):
                if not event.remote_reset:
                    self._gate.refused_stream()
                await self.send(Updated(idle=self.idle))
        await self._flush()

    async def _send_data(self, stream_id: int) -> None:
        self._gate.sent_data()
        await super()._send_data(stream_id)

    async def stream_send(self, event: StreamEvent) -> None:
        if isinstance(event, Data) and asyncio.current_task() is self._reader:
            waiting = self.stream_buffers.get(event.stream_id)
            if isinstance(waiting, BoundedBuffer):
                await waiting.push_at_once(event.data)
                await self._window_updated(event.stream_id)
            return
        buffer = self.stream_buffers.get(event.stream_id) if isinstance(event, StreamClosed) else None
        if buffer is not None and not buffer.complete:
            await buffer.close()
            self._reset(event.stream_id, ErrorCodes.CANCEL)
            await self._window_updated(event.stream_id)
            await self._flush()
        await super().stream_send(_with_headers(event))

    def _acknowledge(self, event: DataReceived) -> None:
        try:
            self.connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        except ProtocolError:
            pass  # the stream is closed on both sides: no acknowledgement is due

    def _reset(self, stream_id: int, code: ErrorCodes) -> None:
        try:
            self.connection.reset_stream(stream_id, code)
        except ProtocolError:
            pass  # the stream has ended meanwhile


_SECURE = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS]


def _with_headers(event: StreamEvent) -> StreamEvent:
    """Add the security headers that hypercorn's own responses lack, such as those to a bad handshake."""
    if isinstance(event, Response) and event.status_code >= 200:
        has = {name for name, _ in event.headers}
        missing = [(name, value) for name, value in _SECURE if name not in has]
        if missing:
            return replace(event, headers=[*event.headers, *missing])
    return event


def _readable(request: RequestReceived) -> bool:
    """Whether the request has an ASCII path; an extended CONNECT has one (RFC 8441), a plain CONNECT does not."""
    path = next((value for name, value in request.headers or [] if name == b":path"), b"")
    return bool(path) and bytes(path).isascii()
