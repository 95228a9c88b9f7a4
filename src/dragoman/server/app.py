"""The ASGI application: admission first, then a table of paths."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from dragoman.gateway.gateway import Gateway
from dragoman.gateway.ports.store import StoreError
from dragoman.log import LOG_CONTEXT
from dragoman.server.asgi import (
    HttpError,
    Receive,
    Request,
    Response,
    Scope,
    Send,
    Stalled,
    shutting_down,
)
from dragoman.server.auth.admission import (
    ANONYMOUS,
    ASSETS,
    PAGE_WANTED,
    WORKER,
    Admission,
    Refusal,
    strict_transport,
)
from dragoman.server.fronts.asgi_socket import AsgiSocket, refuse
from dragoman.server.fronts.fronts import ACP, API, INLINE, Fronts
from dragoman.server.listen.connection_limit import ConnectionLimit
from dragoman.server.listen.token_shares import TokenShares
from dragoman.server.listen.trusted_proxies import TrustedProxies
from dragoman.server.monitoring.metrics import Metrics
from dragoman.server.pages import Pages, missing_page, refused_page
from dragoman.wire.errors import RpcError

log = logging.getLogger(__name__)

PROBES = frozenset({"/healthz", "/readyz", "/metrics"})
"""Paths that are answered during shutdown too: `/readyz` reports it."""

Route = Callable[[Request], Awaitable[Response | None]]
"""Returns the response, or None if the handler has sent it."""


class App:
    def __init__(
        self,
        gateway: Gateway,
        admission: Admission,
        fronts: Fronts,
        metrics: Metrics,
        shares: TokenShares,
        connection_limit: ConnectionLimit,
        proxies: TrustedProxies,
    ) -> None:
        """`shares` limits open requests and sockets per token, `connection_limit` per address."""
        self._gateway = gateway
        self._connection_limit = connection_limit
        self._proxies = proxies
        self._shares = shares
        self._admission = admission
        self._fronts = fronts
        self._metrics = metrics
        self._pages = Pages()
        self._routes: dict[tuple[str, str], Route] = {
            ("GET", "/"): self._pages.index,
            ("GET", WORKER): self._pages.worker,
            ("GET", "/healthz"): alive,
            ("GET", "/readyz"): lambda request: ready(gateway),
            ("GET", "/metrics"): lambda request: metrics.answer(gateway),
            ("POST", "/acp/rpc"): fronts.rpc.post,
            ("GET", "/acp/sse"): fronts.rpc.listen,
            ("POST", INLINE): fronts.inline.post,
            ("GET", "/acp/events"): fronts.inline.events,
        }
        self._paths = {path for _, path in self._routes}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return
        receive, send = self._metrics.traffic.count_bodies(receive, send, self._begun)
        request = Request(scope, receive, send)
        request.visit = self._proxies.unwrap(request.visit)
        LOG_CONTEXT.set(_about(request))
        request.headers = strict_transport(request.visit)
        if scope["type"] == "websocket":
            await self._socket(request, send)
            return
        request.headers += self._admission.cross_origin(request.visit)
        try:
            response = await self._answer(request)
            if response is not None:
                await request.respond(response)
        except Stalled:
            log.info("client reads nothing, closing")

    def _begun(self, status: int) -> None:
        self._metrics.response(status)
        log.debug("response", extra={"status": status})

    async def _socket(self, request: Request, send: Send) -> None:
        await request.receive()  # the handshake
        try:
            with self._connection_limit.visiting(request.visit):
                await self._run_socket(request, send)
        except (HttpError, RpcError) as error:
            await refuse(send, Response.refusal(HttpError.of(error)))

    async def _run_socket(self, request: Request, send: Send) -> None:
        """Run a WebSocket; raises `HttpError` or `RpcError` before it is accepted."""
        refused = self._admit(request)
        if refused is not None:
            raise HttpError(refused.status, refused.message, refused.headers)
        if self._gateway.closing:
            raise shutting_down()
        rate_limit = self._admission.credentials.rate_limit(request.identity)
        with self._shares.reserved(request.identity):
            speaker = self._fronts.socket(request.path, request.identity, rate_limit)
        socket = AsgiSocket(speaker, request.receive, send, restarting=lambda: self._gateway.closing)
        cookies = (self._fronts.affinity.header(secure=request.visit.secure), *request.headers)
        try:
            await socket.run(*cookies, subprotocol=request.visit.subprotocol)
        finally:
            self._shares.give_back(request.identity)

    async def _answer(self, request: Request) -> Response | None:
        try:
            with self._connection_limit.visiting(request.visit):
                return await self._answer_admitted(request)
        except (HttpError, RpcError, StoreError) as error:
            if request.started:
                log.warning("response broke off: %s", error)
                return None
            told = HttpError.of(error)
            return missing_page(request.visit, told) or Response.refusal(told)

    async def _answer_admitted(self, request: Request) -> Response | None:
        refused = self._admit(request)
        if refused is not None and _is_reader(request, refused):
            return self._pages.reader(200 if self._is_known(request.path) else 404)
        if refused is not None:
            return refused_page(request.visit, refused) or Response.refusal(refused)
        if request.identity is ANONYMOUS:
            return await self._route(request)
        with self._shares.taken(request.identity):
            return await self._route(request)

    def _admit(self, request: Request) -> Refusal | None:
        """Check and set the request's identity; return the refusal if any. Raises `RpcError` above the rate limit."""
        admitted = self._admission.check(request.visit)
        if isinstance(admitted, Refusal):
            if admitted.status >= 400 and not _is_reader(request, admitted):
                log.info("request refused: %s", admitted.message, extra={"status": admitted.status})
            return admitted
        request.identity = admitted
        request.headers = (*request.headers, *self._admission.renewal(request.visit, admitted))
        if admitted is not ANONYMOUS:
            request.rate_limit = self._admission.credentials.rate_limit(admitted)
            request.rate_limit.request()
        return None

    def _is_known(self, path: str) -> bool:
        return path in self._paths or path == API or path.startswith(API + "/")

    async def _route(self, request: Request) -> Response | None:
        if self._gateway.closing and request.path not in PROBES:
            raise shutting_down()
        method = "GET" if request.method == "HEAD" else request.method
        route = self._routes.get((method, request.path))
        if route is not None:
            return await route(request)
        if request.path in self._paths:
            raise HttpError(405, "This path does not take this method.")
        if request.path == API or request.path.startswith(API + "/"):
            return await self._fronts.api.answer(request)
        if method == "GET" and request.path.startswith(ASSETS):
            return await self._pages.asset(request)
        if request.path == ACP or request.path.startswith(ACP + "/"):
            return await self._fronts.acp(request)
        raise HttpError(404, "There is nothing here.")


def _is_reader(request: Request, refused: Refusal) -> bool:
    """Whether to send the reader page, which fetches the same address again with the browser's page secret."""
    streams = request.path == ACP or request.path.startswith(ACP + "/")
    return refused is PAGE_WANTED and request.visit.for_person and not streams


def _about(request: Request) -> dict[str, object]:
    """Log fields of the request, with `X-Request-ID` if a proxy set it; without the query, which may have a token."""
    given, session = request.header("x-request-id")[:64], request.header("acp-session-id")[:64]
    shown = {"method": request.method, "path": request.path, "address": request.visit.address}
    return {**shown, **({"request": given} if given else {}), **({"session": session} if session else {})}


async def alive(request: Request) -> Response:
    """Liveness; needs no token, so the response is only `ok`."""
    return Response(200, b"ok\n", "text/plain; charset=utf-8")


async def ready(gateway: Gateway) -> Response:
    """Readiness; 503 during shutdown, or when sessions should be stored and cannot be."""
    trouble = "shutting down" if gateway.closing else gateway.trouble
    if trouble is not None:
        return Response.json({"ready": False, "reason": trouble}, 503)
    return Response.json({"ready": True, "sessions": len(gateway.sessions), "clients": len(gateway.clients)})
