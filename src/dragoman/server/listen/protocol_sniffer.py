"""Chooses the protocol of a connection by its first bytes.

GET … Upgrade: websocket     Dragoman's own WebSocket (`fronts.websocket`), whose frames leave in batches
PRI * HTTP/2.0, all the rest HTTP on hypercorn (`hypercorn.connection`)
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Protocol, cast

import h11

from dragoman.server import limits
from dragoman.server.asgi import SECURITY_HEADERS, header_bytes, joined_headers
from dragoman.server.auth.admission import Visit
from dragoman.server.hypercorn.strict_h11 import head_size, strict_connection

_CLIENT_HELLO = b"\x16"
"""First byte of TLS: on a port without TLS it is refused at once, instead of timing out."""
_PREFACE = b"PRI * HTTP/2.0\r\n\r\n"
_UPGRADE = re.compile(rb"\r\nupgrade:[ \t]*websocket[ \t]*\r\n", re.IGNORECASE)


class SnifferHandler(Protocol):
    """Takes over connections whose protocol is known."""

    def enter(self, sniffer: ProtocolSniffer) -> None: ...

    def leave(self, sniffer: ProtocolSniffer) -> None: ...

    def refused(self, status: int) -> None: ...

    def http(self, transport: asyncio.Transport, early: bytes, sniffer: ProtocolSniffer) -> None: ...

    def websocket(
        self, transport: asyncio.Transport, visit: Visit, early: bytes, sniffer: ProtocolSniffer
    ) -> None: ...


class ProtocolSniffer(asyncio.Protocol):
    """One connection until the headers of its first request have arrived."""

    def __init__(self, handler: SnifferHandler, on_end: Callable[[], None]) -> None:
        self._handler = handler
        self.on_end = on_end
        self._head = b""
        self._timer: asyncio.TimerHandle | None = None
        self._passed = False
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._handler.enter(self)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(limits.HEAD_TIMEOUT, self.refuse, 408, "no request came")

    def data_received(self, data: bytes) -> None:
        if self._passed:
            return
        self._head += data
        if self._head[:1] == _CLIENT_HELLO:
            self.refuse(400, "there is no TLS here")
        elif self._head.startswith(_PREFACE):
            self._pass()
            self._handler.http(self.transport, self._head, self)
        elif _PREFACE.startswith(self._head[: len(_PREFACE)]):
            return  # could still become HTTP/2
        else:
            self._look_for_request()

    def _look_for_request(self) -> None:
        try:
            size = head_size(self._head)
        except h11.LocalProtocolError as error:
            self.refuse(400, str(error))
            return
        if max(size, len(self._head) if not size else 0) > limits.MAX_HEAD_BYTES:
            self.refuse(431, "the headers are too long")
        elif size:
            self._pass()
            self._first_request(self._head[:size], self._head[size:])

    def _first_request(self, head: bytes, early: bytes) -> None:
        if not _UPGRADE.search(head):
            self._handler.http(self.transport, self._head, self)
            return
        try:
            request = _parse(head)
        except h11.RemoteProtocolError as error:
            self.refuse(400, str(error))
            return
        if _upgrades(request):
            self._handler.websocket(self.transport, _visit(request, self.transport), early, self)
        else:
            self._handler.http(self.transport, self._head, self)

    def _pass(self) -> None:
        self._passed = True
        if self._timer is not None:
            self._timer.cancel()

    def refuse(self, status: int, reason: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        """Send an error response and close; bytes that still arrive are dropped for `DISCARD_TIMEOUT`.

        If the connection were closed with unread bytes, the kernel would reset it and the peer would lose the response.
        """
        self._pass()
        if self.transport.is_closing():
            return
        self._handler.refused(status)
        self.transport.write(response(status, reason, headers))
        if self.transport.can_write_eof():
            self.transport.write_eof()
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(limits.DISCARD_TIMEOUT, self.transport.abort)
        else:
            self.transport.close()

    def close(self) -> None:
        """Close at shutdown. A first request may be on its way, so 503 is sent before it arrives."""
        if not self._passed:
            self.refuse(503, "Dragoman is shutting down.")
        else:
            self.transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        self._pass()
        self._handler.leave(self)


def response(status: int, reason: str, headers: tuple[tuple[str, str], ...] = ()) -> bytes:
    """A complete HTTP/1.1 error response."""
    body = reason.encode() + b"\n"
    lines = [
        f"HTTP/1.1 {status} {reason if len(reason) < 40 else 'Refused'}".encode(),
        b"content-type: text/plain; charset=utf-8",
        b"content-length: %d" % len(body),
        b"connection: close",
        b"cache-control: no-store",
        *(name.encode() + b": " + header_bytes(value) for name, value in (*SECURITY_HEADERS, *headers)),
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def _parse(head: bytes) -> h11.Request:
    connection = strict_connection(limits.MAX_HEAD_BYTES)
    connection.receive_data(head)
    request = connection.next_event()
    if not isinstance(request, h11.Request):
        raise h11.RemoteProtocolError("not a request")
    return request


def _upgrades(request: h11.Request) -> bool:
    """Whether the request asks for an upgrade in the form that proxies recognize too (RFC 9110 §7.8)."""
    options = b",".join(value for name, value in request.headers if name == b"connection")
    named = {option.strip().lower() for option in options.split(b",")}
    return b"upgrade" in named and request.http_version == b"1.1"


def _visit(request: h11.Request, transport: asyncio.Transport) -> Visit:
    path, _, query = request.target.decode("latin-1").partition("?")
    headers = joined_headers(request.headers)
    tls = transport.get_extra_info("ssl_object") is not None
    peer = transport.get_extra_info("peername") or ("",)
    return Visit(request.method.decode("latin-1"), path, query, headers, tls, str(peer[0]))
