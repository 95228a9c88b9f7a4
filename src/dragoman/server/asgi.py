"""The part of ASGI that Dragoman uses: reading a request, writing a response."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

import msgspec

from dragoman.gateway.access.identity import Identity, Role
from dragoman.gateway.access.rate_limit import RateLimit
from dragoman.gateway.ports.store import StoreError
from dragoman.server import limits
from dragoman.server.auth.admission import ANONYMOUS, Refusal, Visit
from dragoman.server.fronts.http_status import BY_REASON, reason_of, status_of
from dragoman.wire.errors import RpcError
from dragoman.wire.framing import single_line

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = Iterable[tuple[str, str]]

JSON = "application/json"
EVENTS = "text/event-stream"

SECURITY_HEADERS: tuple[tuple[str, str], ...] = (
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    (
        "content-security-policy",
        "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'",
    ),
)

DEFAULT_HEADERS = (("cache-control", "no-store"), *SECURITY_HEADERS)
"""Headers of every response that does not set them itself."""


def with_defaults(headers: Headers) -> list[tuple[str, str]]:
    given = list(headers)
    names = {name for name, _ in given}
    return [*given, *(default for default in DEFAULT_HEADERS if default[0] not in names)]


CODES = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    408: "timeout",
    409: "conflict",
    410: "gone",
    413: "too_large",
    415: "unsupported_media_type",
    429: "too_many_requests",
    500: "failed",
    501: "not_implemented",
    502: "agent_failed",
    503: "unavailable",
    504: "agent_timeout",
}
"""Error codes by status, for errors without a code of their own."""


class Stalled(Exception):
    """The client stays connected and does not read its response."""


class HttpError(Exception):
    """An error response: a status and one sentence."""

    def __init__(self, status: int, message: str, headers: Headers = (), *, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = tuple(headers)

    @classmethod
    def of(cls, error: HttpError | RpcError | StoreError) -> HttpError:
        """The response to an error of the gateway or the store."""
        if isinstance(error, HttpError):
            return error
        if isinstance(error, StoreError):
            return cls(BY_REASON.get(error.code, 503), str(error), code=error.code)
        wait = error.data.get("retryAfter") if isinstance(error.data, dict) else None
        # An agent's error may hold anything here; the header is sent only for a whole number of seconds.
        headers = [("retry-after", str(wait))] if type(wait) is int and wait >= 0 else []
        return cls(status_of(error), error.message, headers, code=reason_of(error))


def shutting_down() -> HttpError:
    """The error for every request and handshake during shutdown."""
    return HttpError(503, "Dragoman is shutting down.", code="shutdown")


@dataclass(frozen=True, slots=True)
class Response:
    """A complete response."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def json(cls, value: object, status: int = 200, headers: Headers = ()) -> Response:
        return cls(status, msgspec.json.encode(value), headers=tuple(headers))

    @classmethod
    def refusal(cls, refused: Refusal | HttpError) -> Response:
        code = (refused.code if isinstance(refused, HttpError) else None) or CODES.get(
            refused.status, "failed"
        )
        body = {"error": refused.message, "code": code} if refused.message else None
        encoded = b"" if body is None else msgspec.json.encode(body) + b"\n"
        return cls(refused.status, encoded, headers=refused.headers)

    def all_headers(self) -> list[tuple[str, str]]:
        kind = [("content-type", self.content_type)] if self.body else []
        return with_defaults([*kind, ("content-length", str(len(self.body))), *self.headers])


class Request:
    """One HTTP request, with methods to respond."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.visit = visit_of(scope)
        self.identity: Identity = ANONYMOUS
        """The client's identity, set by admission."""
        self.rate_limit: RateLimit | None = None
        self.headers: tuple[tuple[str, str], ...] = ()
        """Added to every response to this request."""
        self.started = False
        """The response has begun and can no longer be replaced by an error."""
        self.receive = receive
        self._send = send
        self._body: bytes | None = None

    @property
    def method(self) -> str:
        return self.visit.method

    @property
    def path(self) -> str:
        return self.visit.path

    def header(self, name: str) -> str:
        return self.visit.header(name)

    def query(self, name: str) -> str | None:
        values = parse_qs(self.visit.query, keep_blank_values=True).get(name)
        return values[0] if values else None

    def require(self, role: Role) -> None:
        """Raise 403 if the client's role is too low."""
        refused = self.identity.refusal(role, f"{self.method} {self.path}")
        if refused is not None:
            raise refused

    def require_json(self) -> None:
        """Raise 415 unless the body is declared as JSON; other sites' pages cannot send that without a preflight."""
        if self.header("content-type").partition(";")[0].strip().lower() != JSON:
            raise HttpError(415, f"Content-Type must be {JSON}.")

    def require_event_reader(self) -> None:
        """Raise 406 if the Accept header is set and excludes event streams."""
        accepted = self.header("accept")
        if accepted and not re.search(r"text/event-stream|\*/\*", accepted):
            raise HttpError(406, f"This is a stream of events: send Accept: {EVENTS}.")

    async def body(self, max_bytes: int) -> bytes:
        """The whole body, stored for later calls; raises `HttpError` if it is too long or too slow."""
        if self._body is None:
            self._body = await self._read_body(max_bytes)
        return self._body

    async def message(self, max_bytes: int) -> bytes:
        """The body as one line: it may be sent on as a line, or as an event of a stream."""
        return single_line(await self.body(max_bytes)).strip()

    async def _read_body(self, max_bytes: int) -> bytes:
        declared = self.header("content-length")
        if declared.isdigit() and int(declared) > max_bytes:
            raise _too_large(max_bytes)
        whole = bytearray()  # not a list of parts: each may be one byte long
        try:
            async with asyncio.timeout(limits.BODY_TIMEOUT):
                while True:
                    event = await self.receive()
                    if event["type"] != "http.request":
                        raise HttpError(400, "The request ended early.")
                    part = event.get("body", b"")
                    whole += part
                    if self.rate_limit is not None:
                        self.rate_limit.received(len(part))
                    if len(whole) > max_bytes:
                        await self._discard(event)
                        raise _too_large(max_bytes)
                    if not event.get("more_body", False):
                        return bytes(whole)
        except TimeoutError as error:
            raise HttpError(408, "The request's body did not come in time.") from error

    async def _discard(self, event: MutableMapping[str, Any]) -> None:
        """Read on for a moment: a client that is disconnected while it sends does not see the response."""
        left = limits.DISCARDED_BYTES
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limits.DISCARD_TIMEOUT):
                while left > 0 and event.get("more_body", False):
                    event = await self.receive()
                    left -= len(event.get("body", b""))

    async def respond(self, response: Response) -> None:
        await self.start(response.status, response.all_headers())
        await self.write(response.body, more=False)

    async def start(self, status: int, headers: Headers) -> None:
        """Begin a response with these headers, and `DEFAULT_HEADERS` where these say nothing else."""
        self.started = True
        given = (*headers, *self.headers)
        encoded = [(name.encode(), header_bytes(value)) for name, value in with_defaults(given)]
        await self._send({"type": "http.response.start", "status": status, "headers": encoded})

    async def write(self, data: bytes, *, more: bool = True) -> None:
        """Send a part of the body; raises `Stalled` if the client reads nothing for too long."""
        try:
            async with asyncio.timeout(limits.STALL_TIMEOUT):
                await self._send({"type": "http.response.body", "body": data, "more_body": more})
        except TimeoutError as error:
            raise Stalled from error

    async def wait_gone(self) -> None:
        """Return when the client has disconnected."""
        while (await self.receive())["type"] != "http.disconnect":
            pass


def header_bytes(value: str) -> bytes:
    """Encode a header value without control characters: a line end would begin another header."""
    return value.encode("latin-1", "replace").translate(None, _CONTROL)


_CONTROL = bytes(range(0x20)) + b"\x7f"


def joined_headers(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by lower-case name; repeated ones are joined into one value, so that none hides another."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in pairs:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        joined = "; " if name == "cookie" else ", "  # HTTP/2 may split the cookie header
        headers[name] = f"{headers[name]}{joined}{value}" if name in headers else value
    return headers


def visit_of(scope: Scope) -> Visit:
    """The visit as the peer sent it; `TrustedProxies.unwrap` then finds the client behind a proxy."""
    return Visit(
        method=scope.get("method", "GET"),
        path=scope["path"],
        query=scope["query_string"].decode("latin-1"),
        headers=joined_headers(scope["headers"]),
        secure=scope.get("scheme") in ("https", "wss"),
        address=str((scope.get("client") or ("",))[0]),
    )


def _too_large(max_bytes: int) -> HttpError:
    return HttpError(413, f"The body is longer than {max_bytes} bytes (limits.max_message_bytes).")
