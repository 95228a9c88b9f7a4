"""Opens a WebSocket to a server (RFC 6455 §4.1)."""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
from typing import cast

import h11

from dragoman.agents.remote.address import Address
from dragoman.agents.remote.credentials import Cookies
from dragoman.agents.remote.errors import CONNECT_TIMEOUT, RemoteError, not_acp, refused, unreachable
from dragoman.rpc.link import Link, LinkHandler
from dragoman.rpc.websocket import WebSocket, accept_key

MAX_HEAD_BYTES = 32 * 1024


async def open_websocket(
    address: Address,
    headers: dict[str, str],
    cookies: Cookies,
    context: ssl.SSLContext | None,
    handler: LinkHandler,
    max_bytes: int,
) -> Link:
    """Connect and do the handshake; raises `RemoteError`."""
    loop = asyncio.get_running_loop()
    shake = _Handshake(address, headers, cookies)
    transport: asyncio.Transport | None = None
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            transport, _ = await loop.create_connection(
                lambda: shake, address.host, address.port, ssl=context
            )
            early = await shake.done
    except OSError as error:  # TimeoutError is one
        if transport is not None:
            transport.abort()
        raise unreachable(address, error) from error
    except (RemoteError, asyncio.CancelledError):
        if transport is not None:
            transport.abort()
        raise
    socket = WebSocket(handler, max_bytes, client=True)
    socket.open(transport, b"", early)
    return socket


class _Handshake(asyncio.Protocol):
    """The connection until the server has switched protocols."""

    def __init__(self, address: Address, headers: dict[str, str], cookies: Cookies) -> None:
        self._address = address
        self._cookies = cookies
        self._key = base64.b64encode(os.urandom(16)).decode()
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
        self._headers = headers
        self.done: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        """Resolves to the bytes that came after the server's answer."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        headers = {
            "Host": self._address.authority,
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Key": self._key,
            "Sec-WebSocket-Version": "13",
            **self._headers,
        }
        if self._cookies.header:
            headers["Cookie"] = self._cookies.header
        request = h11.Request(method="GET", target=self._address.target, headers=list(headers.items()))
        sent = self._http.send(request) or b""
        cast("asyncio.Transport", transport).write(sent)

    def data_received(self, data: bytes) -> None:
        if self.done.done():
            return
        try:
            self._http.receive_data(data)
            event = self._http.next_event()
        except h11.RemoteProtocolError:
            self.done.set_exception(not_acp(self._address, "it does not speak HTTP"))
            return
        if isinstance(event, h11.InformationalResponse) and event.status_code == 101:
            self._switched(event)
        elif isinstance(event, h11.Response):
            self.done.set_exception(self._refused(event.status_code))

    def _switched(self, event: h11.InformationalResponse) -> None:
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in event.headers]
        self._cookies.take(value for name, value in headers if name == "set-cookie")
        if dict(headers).get("sec-websocket-accept") != accept_key(self._key):
            self.done.set_exception(not_acp(self._address, "its WebSocket handshake is wrong"))
        else:
            self.done.set_result(self._http.trailing_data[0])

    def _refused(self, status: int) -> RemoteError:
        if status < 400:
            return not_acp(self._address, f"HTTP status {status} instead of a WebSocket")
        return refused(self._address, status)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(
                RemoteError(f"{self._address} closed the connection during the handshake: try again later")
            )
