"""Accepts connections: checks the connection limit, does the TLS handshake, and passes them to a protocol sniffer.

It replaces asyncio's server, which would count connections only after their TLS handshakes, could not change the
certificate, and gives no control when file descriptors run out.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Callable, Coroutine
from typing import Any

from dragoman.server import limits
from dragoman.server.listen.connection_limit import ConnectionLimit
from dragoman.server.listen.protocol_sniffer import ProtocolSniffer, response
from dragoman.server.listen.tls import Certificate

log = logging.getLogger(__name__)

BACKLOG = 1024
OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
PAUSE = 0.5
"""Seconds until the next try when no descriptors are left; waiting connections stay in the backlog."""


class Acceptor:
    def __init__(
        self,
        connection_limit: ConnectionLimit,
        make_sniffer: Callable[[Callable[[], None]], ProtocolSniffer],
        silence: float,
        refused: Callable[[int], None],
    ) -> None:
        """`make_sniffer` makes the sniffer of one connection; its argument must be called when the connection is over.

        `silence` is how many seconds a peer may leave sent data unacknowledged; `refused` is called with the status of
        each connection that is refused for lack of room.
        """
        self._refused = refused
        self._connection_limit = connection_limit
        self._silence = silence
        self._make_sniffer = make_sniffer
        self._sockets: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._pauses: dict[socket.socket, asyncio.TimerHandle] = {}
        self._short = False
        """No descriptors were left at the last try to accept."""
        self.certificate: Certificate | None = None

    async def open(self, host: str, port: int) -> int:
        """Listen and return the port; port 0 takes a free one. Raises `OSError`."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        try:
            for family, kind, protocol, _, address in dict.fromkeys(found):
                chosen = port or (self.port if self._sockets else 0)
                listening = _listening(family, kind, protocol, (address[0], chosen, *address[2:]))
                _set_silence(listening, self._silence)
                self._sockets.append(listening)
        except OSError:
            for listening in self._sockets:
                listening.close()
            self._sockets.clear()
            raise
        for listening in self._sockets:
            self._watch(listening)
        return self.port

    @property
    def port(self) -> int:
        return int(self._sockets[0].getsockname()[1])

    def close(self) -> None:
        """Stop listening. Connections in the backlog are accepted first: closing the socket would reset them."""
        for listening in self._sockets:
            self._ignore(listening)
            waiting = BACKLOG
            while waiting and self._accept(listening):
                waiting -= 1
            self._ignore(listening)
            listening.close()
        self._sockets.clear()

    def cancel(self) -> None:
        """Cancel unfinished handshakes."""
        for task in self._tasks:
            task.cancel()

    def _watch(self, listening: socket.socket) -> None:
        self._pauses.pop(listening, None)
        asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _ignore(self, listening: socket.socket) -> None:
        asyncio.get_running_loop().remove_reader(listening)
        pause = self._pauses.pop(listening, None)
        if pause is not None:
            pause.cancel()

    def _accept(self, listening: socket.socket) -> bool:
        """Take one connection from the backlog; False when there is none, or none can be taken now."""
        try:
            connection, address = listening.accept()
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno in OUT_OF_FILES:
                self._pause(listening, error)
                return False
            return True  # the connection ended before it was accepted
        self._short = False
        connection.setblocking(False)
        self._enter(connection, str(address[0]))
        return True

    def _pause(self, listening: socket.socket, error: OSError) -> None:
        if not self._short:
            log.error("no connection can be accepted: %s", error.strerror)
        self._short = True
        self._ignore(listening)
        self._pauses[listening] = asyncio.get_running_loop().call_later(PAUSE, self._watch, listening)

    def _enter(self, connection: socket.socket, address: str) -> None:
        if self._connection_limit.enter(address):
            self._spawn(self._bring(connection, address))
            return
        if self.certificate is None:
            self._refused(503)
            with contextlib.suppress(OSError):  # best effort, without waiting for the peer
                connection.send(response(503, "too many connections", (("retry-after", "30"),)))
        connection.close()

    async def _bring(self, connection: socket.socket, address: str) -> None:
        left = False

        def leave() -> None:
            nonlocal left
            if not left:
                left = True
                self._connection_limit.leave(address)

        context = self.certificate.context if self.certificate is not None else None
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(
                lambda: self._make_sniffer(leave),
                connection,
                ssl=context,
                ssl_handshake_timeout=None if context is None else limits.HEAD_TIMEOUT,
                ssl_shutdown_timeout=None if context is None else limits.LINGER_TIMEOUT,
            )
        except OSError as error:  # includes TLS errors and handshake timeouts
            log.debug("connection failed before its first request: %s", error)
            connection.close()
            leave()
        except asyncio.CancelledError:
            connection.close()
            leave()
            raise

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("connection could not be taken", exc_info=error)


def _listening(family: int, kind: int, protocol: int, address: tuple[object, ...]) -> socket.socket:
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.setblocking(False)
        made.bind(address)
        made.listen(BACKLOG)
    except OSError:
        made.close()
        raise
    return made


def _set_silence(listening: socket.socket, seconds: float) -> None:
    """Set the time after which the kernel drops a connection whose peer acknowledges or reads nothing.

    For half-open event streams, which are only written to: Linux retries for 15 minutes. Connections inherit it.
    """
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    if option is not None:
        listening.setsockopt(socket.IPPROTO_TCP, option, max(1, int(seconds * 1000)))
