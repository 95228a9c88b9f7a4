"""HTTP/1.1 and HTTP/2 on hypercorn, one connection at a time; Dragoman accepts the sockets and runs the loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.config import Config
from hypercorn.events import Event, Updated

from dragoman.server import limits
from dragoman.server.hypercorn import protocols

log = logging.getLogger(__name__)


class Connection(TCPServer):
    """A connection that ends even if the peer does not read, and does not start if the peer has left already."""

    _task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        self._task = asyncio.current_task()
        if self.writer.get_extra_info("socket") is not None:
            await super().run()

    async def protocol_send(self, event: Event) -> None:
        """Keep a cancelled connection from becoming idle: the idle timeout would delay its end."""
        cut_off = self._task is not None and self._task.cancelling() > 0
        if not (cut_off and isinstance(event, Updated)):
            await super().protocol_send(event)

    async def _idle_timeout(self) -> None:
        """Close an idle connection, sooner if it has not sent a request yet."""
        asked = self.protocol.protocol.keep_alive_requests > 0
        seconds = limits.KEEP_ALIVE if asked else min(limits.HEAD_TIMEOUT, limits.KEEP_ALIVE)
        try:
            await asyncio.wait_for(self.context.terminated.wait(), seconds)
        except TimeoutError:
            pass
        await asyncio.shield(self._initiate_server_close())

    async def _initiate_server_close(self) -> None:
        if isinstance(self.protocol.protocol, protocols.PatientH2):
            await self.protocol.protocol.say_goodbye()
        await super()._initiate_server_close()

    async def _close(self) -> None:
        try:
            async with asyncio.timeout(limits.LINGER_TIMEOUT):
                await super()._close()
        except TimeoutError:
            self.writer.transport.abort()


class StallWatch(asyncio.StreamReaderProtocol):
    """Disconnects a peer that reads not one byte of the waiting data for `STALL_TIMEOUT`."""

    _waiting = 0
    _timer: asyncio.TimerHandle | None = None
    _outgoing: asyncio.Transport

    def watch(self, transport: asyncio.Transport) -> None:
        self._outgoing = transport
        self.connection_made(transport)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._check_stalled()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _check_stalled(self) -> None:
        waiting = self._outgoing.get_write_buffer_size()
        if self._timer is not None and waiting >= self._waiting:
            log.info("http peer reads nothing, closing", extra={"bytes": waiting})
            self._outgoing.abort()
            return
        self._waiting = waiting
        self._timer = asyncio.get_running_loop().call_later(limits.STALL_TIMEOUT, self._check_stalled)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class HypercornServer:
    """Serves an ASGI application on connections that it is handed."""

    def __init__(self, app: Callable[..., Any], max_message_bytes: int, ping_interval: float) -> None:
        protocols.install()
        self._app = ASGIWrapper(app)
        self._config = _config()
        self._config.websocket_max_message_size = max_message_bytes
        self._config.websocket_ping_interval = ping_interval
        self._context = protocols.Context(None)
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, transport: asyncio.Transport, early: bytes, on_end: Callable[[], None]) -> None:
        """Take over a connection; `early` is what was read from it so far."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=limits.MAX_HEAD_BYTES, loop=loop)
        stream = StallWatch(reader, loop=loop)
        transport.set_protocol(stream)
        stream.watch(transport)
        reader.feed_data(early)
        writer = asyncio.StreamWriter(transport, stream, reader, loop)
        server = Connection(self._app, loop, self._config, self._context, {}, reader, writer)
        task = loop.create_task(server.run())
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._ended(done, transport, on_end))

    def stop(self) -> None:
        """Make each further HTTP/1.1 response the last of its connection (`connection: close`)."""
        self._context.stopping = True

    async def end(self) -> None:
        """End idle connections at once, the others after their responses, and wait for all."""
        self.stop()
        await self._context.terminated.set()
        while self._tasks:  # a new connection may begin meanwhile
            await asyncio.wait(list(self._tasks))

    def cancel(self) -> None:
        """Disconnect the remaining peers."""
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
    # On HTTP/2 a limit would cut off open streams, and the last response.
    config.keep_alive_max_requests = 2**31
    config.h11_max_incomplete_size = limits.MAX_HEAD_BYTES
    config.h2_max_concurrent_streams = limits.MAX_H2_STREAMS
    config.h2_max_header_list_size = limits.MAX_HEAD_BYTES
    # A bounded queue deadlocks: an application that responds early does not read the rest of the body, and its response
    # waits for room in the queue. Dragoman's application always reads or responds, so nothing piles up.
    config.max_app_queue_size = 0
    return config
