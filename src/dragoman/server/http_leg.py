"""HTTP/1.1 and HTTP/2 on hypercorn, one connection at a time: the socket and the loop stay ours."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from h2.events import DataReceived, Event
from hypercorn import protocol
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.config import Config
from hypercorn.protocol import h2, ws_stream

from dragoman.server import limits

log = logging.getLogger(__name__)


class BoundedBuffer(h2.StreamBuffer):
    """hypercorn 0.18 lets the writer go on whenever little was taken, instead of when little is left.

    A peer that takes nothing would be buffered for without end.
    """

    async def pop(self, max_length: int) -> bytes:
        data = bytes(self.buffer[:max_length])
        del self.buffer[: len(data)]
        if len(self.buffer) < h2.BUFFER_LOW_WATER:
            await self._paused.set()
        if not self.buffer:
            await self._is_empty.set()
        return data


class PatientH2(h2.H2Protocol):
    """hypercorn 0.18 ends the whole connection, with every stream on it, for the rest of an answered request's body."""

    async def _handle_events(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, DataReceived) and event.stream_id not in self.streams:
                self.connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            else:
                await super()._handle_events([event])
        await self._flush()


def no_extensions(requested: object, supported: object) -> None:
    """hypercorn always accepts compression; a few bytes could then become gigabytes before anybody counts them."""


ws_stream.server_extensions_handshake = no_extensions  # type: ignore[attr-defined]
h2.StreamBuffer = BoundedBuffer  # type: ignore[misc]
protocol.H2Protocol = PatientH2  # type: ignore[attr-defined]


class HttpLeg:
    """Serves an ASGI application on connections that it is handed."""

    def __init__(self, app: Callable[..., Any], max_message_bytes: int, ping_interval: float) -> None:
        self._app = ASGIWrapper(app)
        self._config = _config()
        self._config.websocket_max_message_size = max_message_bytes
        self._config.websocket_ping_interval = ping_interval
        self._context = WorkerContext(None)
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, transport: asyncio.Transport, early: bytes, on_end: Callable[[], None]) -> None:
        """Go on with a connection that has said `early` so far."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=limits.MAX_HEAD_BYTES, loop=loop)
        stream = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport.set_protocol(stream)
        stream.connection_made(transport)
        reader.feed_data(early)
        writer = asyncio.StreamWriter(transport, stream, reader, loop)
        server = TCPServer(self._app, loop, self._config, self._context, {}, reader, writer)
        task = loop.create_task(server.run())
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._ended(done, transport, on_end))

    async def end(self) -> None:
        """Idle connections end at once, the others when their responses do."""
        await self._context.terminated.set()
        if self._tasks:
            await asyncio.wait(list(self._tasks))

    def cancel(self) -> None:
        """Cut off whoever is left."""
        for task in list(self._tasks):
            task.cancel()

    def _ended(
        self, task: asyncio.Task[None], transport: asyncio.Transport, on_end: Callable[[], None]
    ) -> None:
        self._tasks.discard(task)
        if not transport.is_closing():
            transport.abort()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("http connection failed", exc_info=error)
        on_end()


def _config() -> Config:
    config = Config()
    config.accesslog = None
    config.errorlog = log
    config.include_server_header = False
    config.keep_alive_timeout = limits.KEEP_ALIVE
    config.h11_max_incomplete_size = limits.MAX_HEAD_BYTES
    config.h2_max_concurrent_streams = limits.MAX_H2_STREAMS
    config.h2_max_header_list_size = limits.MAX_HEAD_BYTES
    # A bounded queue deadlocks: an application that answers early does not read the rest, and its answer waits for
    # room in the queue to tell it so. Ours always reads or answers, so nothing piles up.
    config.max_app_queue_size = 0
    return config
