"""Servers on TCP and unix sockets: one gateway client per connection."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path

from dragoman.gateway.client import ClientConnection
from dragoman.machine import short_path
from dragoman.transports.stream import StreamLink

log = logging.getLogger(__name__)

MAX_CONNECTIONS = 256
"""A program that connects in a loop must not use up the file descriptors."""


_PEER = struct.Struct("3i")
"""pid, uid and gid, as `unix(7)` has them."""
HANDSHAKE_TIMEOUT = 30.0
"""Seconds from a connection to its `initialize`: silent connections must not use up `MAX_CONNECTIONS`."""


class ListenError(Exception):
    """The address cannot be listened on; the message says why and what to do."""


class Listener:
    """Accepts clients until it is closed."""

    def __init__(
        self,
        connect: Callable[[], ClientConnection],
        max_bytes: int,
        *,
        strict_start: bool,
        connect_process: Callable[[int], ClientConnection] | None = None,
    ) -> None:
        """`connect_process` makes the client on a unix socket by the id of its process, instead of `connect`."""
        self._connect = connect
        self._connect_process = connect_process
        self._max_bytes = max_bytes
        self._strict_start = strict_start
        self._server: asyncio.AbstractServer | None = None
        self._open: set[ClientConnection] = set()

    async def tcp(self, host: str, port: int) -> int:
        """Listen on a TCP port and return it; port 0 takes a free one."""
        loop = asyncio.get_running_loop()
        try:
            server = await loop.create_server(self._accept, host, port)
        except OSError as error:
            raise ListenError(explain(f"{host}:{port}", error)) from error
        self._server = server
        return int(server.sockets[0].getsockname()[1])

    async def unix(self, path: Path) -> None:
        """Listen on a socket that only this user may open."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        mask = os.umask(0o177)
        try:
            with short_path(path) as name:
                factory = self._accept if self._connect_process is None else partial(_Unknown, self)
                self._server = await loop.create_unix_server(factory, name)
        except OSError as error:
            raise ListenError(explain(str(path), error)) from error
        finally:
            os.umask(mask)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for client in list(self._open):
            client.peer.link.close()

    def accept_process(self, pid: int) -> asyncio.Protocol:
        """The protocol of a connection from a process of this machine."""
        assert self._connect_process is not None
        return self._accept(partial(self._connect_process, pid))

    def _accept(self, connect: Callable[[], ClientConnection] | None = None) -> asyncio.Protocol:
        if len(self._open) >= MAX_CONNECTIONS:
            log.warning("connection refused: there are %d already", MAX_CONNECTIONS)
            return _Refused()
        client = (connect or self._connect)()
        link = StreamLink(client.peer, self._max_bytes, strict_start=self._strict_start)
        self._open.add(client)
        asyncio.get_running_loop().call_later(HANDSHAKE_TIMEOUT, _hang_up_on_strangers, client)
        client.on_left = lambda: self._open.discard(client)
        return link


def _hang_up_on_strangers(client: ClientConnection) -> None:
    if not client.handshake.done:
        client.peer.link.close()


class _Unknown(asyncio.Protocol):
    """A connection on a unix socket until it is known which process made it."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        protocol = self._listener.accept_process(_peer_pid(transport))
        transport.set_protocol(protocol)
        protocol.connection_made(transport)


def _peer_pid(transport: asyncio.BaseTransport) -> int:
    """The id of the process that connected; 0 if the system does not say."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return 0
    found = transport.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, option, _PEER.size)
    return int(_PEER.unpack(found)[0])


class _Refused(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


def explain(address: str, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"{address} is in use by another program; --port N takes another port, --port 0 a free one"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{address} may not be listened on by this user; ports below 1024 need privileges, --port N takes another"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{address} is not an address of this machine"
    return f"cannot listen on {address}: {error.strerror or error}"
