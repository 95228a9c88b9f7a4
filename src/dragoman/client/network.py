"""A running `dragoman serve`: over its unix socket, or over the network as a WebSocket.

A lost connection is restored: sessions are resumed after their last event, and open prompts and questions go on
(`agents.remote.ledger`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit, urlunsplit

from dragoman.agents.remote.agent import RemoteAgent
from dragoman.agents.remote.errors import RemoteError
from dragoman.client.channel import MAX_MESSAGE_BYTES
from dragoman.client.errors import CannotConnect
from dragoman.rpc.link import Link, LinkHandler

SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}


class Restored:
    """Implements `Channel`: a connection that is restored when it is lost."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._remote: RemoteAgent | None = None
        self._opened = 0
        self.on_return: Callable[[bool], None] = lambda connected: None
        """Called with False before each attempt to restore the connection, with True when one has succeeded."""

    async def open(self, handler: LinkHandler) -> None:
        self._remote = RemoteAgent("gateway", self.name, handler, self._dial, {})
        try:
            await self._remote.connect()
        except RemoteError as error:
            raise CannotConnect(str(error)) from error

    async def finish(self) -> None:
        if self._remote is not None:
            await self._remote.stop()

    async def _dial(self, handler: LinkHandler) -> Link:
        self._opened += 1
        if self._opened > 1:
            self.on_return(False)
        link = await self.dial(handler)
        if self._opened > 1:
            self.on_return(True)
        return link

    async def dial(self, handler: LinkHandler) -> Link:
        raise NotImplementedError


class UnixSocket(Restored):
    def __init__(self, path: Path) -> None:
        super().__init__(f"dragoman serve on {path}")
        self._path = path

    async def dial(self, handler: LinkHandler) -> Link:
        from dragoman.gateway.ports.agent import AgentUnavailable
        from dragoman.transports.dial import UnixDialer

        try:
            return await UnixDialer(MAX_MESSAGE_BYTES).dial(f"unix:{self._path}", handler)
        except AgentUnavailable as error:
            raise RemoteError(f"no `dragoman serve` is reached: {error}; start one") from error


class Url(Restored):
    def __init__(self, url: str, token: str | None, ca: str | None) -> None:
        """`url` as `serve` prints it, or of `/acp`; its `?token=` is sent as a header and kept out of messages."""
        parts = urlsplit(url)
        if parts.scheme not in SCHEMES or not parts.hostname:
            raise CannotConnect(
                f"{parts.scheme}://{parts.netloc} is no address of a gateway: give http(s) or ws(s)"
            )
        self._token = token or next(iter(parse_qs(parts.query).get("token", [])), None)
        path = parts.path if parts.path.strip("/") else "/acp"
        self._url = urlunsplit((SCHEMES[parts.scheme], parts.netloc, path, "", ""))
        self._ca = ca
        super().__init__(self._url)

    async def dial(self, handler: LinkHandler) -> Link:
        from dragoman.agents.remote.address import Address
        from dragoman.agents.remote.credentials import Cookies, tls_context
        from dragoman.agents.remote.websocket import open_websocket

        address = Address.of(self._url)
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        context = await asyncio.to_thread(tls_context, self._ca) if address.secure else None
        return await open_websocket(address, headers, Cookies(), context, handler, MAX_MESSAGE_BYTES)
