"""The listening side of `dragoman serve`: one port for every HTTP and WebSocket client."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from dragoman.gateway.access.identity import Identity
from dragoman.gateway.gateway import Gateway
from dragoman.machine import raise_file_limit
from dragoman.rpc.link import CodedLink, Link
from dragoman.server import limits
from dragoman.server.app import App
from dragoman.server.asgi import HttpError, shutting_down
from dragoman.server.auth.admission import Admission, Refusal, Visit, strict_transport
from dragoman.server.auth.first_use import FirstUse
from dragoman.server.fronts.fronts import Fronts, Opener
from dragoman.server.fronts.websocket import POLICY_VIOLATION, WebSocketLink, accept_key
from dragoman.server.hypercorn.connection import HypercornServer
from dragoman.server.listen.acceptor import Acceptor
from dragoman.server.listen.connection_limit import ConnectionLimit
from dragoman.server.listen.protocol_sniffer import ProtocolSniffer
from dragoman.server.listen.tls import Certificate
from dragoman.server.listen.token_shares import TokenShares
from dragoman.server.listen.trusted_proxies import TrustedProxies
from dragoman.server.monitoring.metrics import Metrics
from dragoman.transports.listen import ListenError, explain
from dragoman.wire.errors import RpcError

log = logging.getLogger(__name__)

LOOK_INTERVAL = 1.0
"""Seconds between checks for changed certificates and revoked tokens; new requests of such tokens fail at once."""
GOODBYE = 2.0
"""Seconds that responses have to end after the gateway has disconnected its clients."""
LAST_ANSWERS = 0.25
"""Minimum seconds for responses to the last requests."""

SILENT_HEARTBEATS = 4
"""Unacknowledged heartbeat comments on an event stream after which its reader is disconnected."""


class Server:
    """Implements `SnifferHandler`."""

    def __init__(
        self,
        gateway: Gateway,
        admission: Admission,
        agent: str | None = None,
        sockets: Mapping[str, Opener] | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        """`sockets` are the paths of WebSockets with other protocols than ACP."""
        self._metrics = metrics or Metrics()
        self._gateway = gateway
        self._admission = admission
        admission.first_use = FirstUse(gateway.audit)
        admission.credentials.on_change = self._tokens_changed
        self._fronts = Fronts(gateway, agent, admission, sockets)
        config = gateway.config
        self._proxies = TrustedProxies(config.serve.trusted_proxies)
        files = raise_file_limit(limits.MAX_CONNECTIONS + limits.RESERVED_FILES)
        connection_limit = ConnectionLimit(files, config.serve.connections_per_address, self._proxies.trusts)
        self._connection_limit = connection_limit
        share = max(1, int(connection_limit.room * limits.TOKEN_SHARE))
        self._shares = TokenShares(
            "sockets and requests at once", share, limits.MAX_H2_STREAMS * connection_limit.room
        )
        app = App(
            gateway, admission, self._fronts, self._metrics, self._shares, connection_limit, self._proxies
        )
        self._http = HypercornServer(app, config.limits.max_message_bytes, config.serve.ping_interval)
        silence = SILENT_HEARTBEATS * config.serve.keep_alive
        self._acceptor = Acceptor(
            connection_limit, lambda on_end: ProtocolSniffer(self, on_end), silence, self.refused
        )
        self._inside: set[ProtocolSniffer] = set()
        self._look: asyncio.TimerHandle | None = None
        self._ending: asyncio.Future[None] | None = None
        self._latest = 0.0

    async def listen(self, host: str, port: int, certificate: Certificate | None = None) -> int:
        """Listen and return the port; port 0 takes a free one."""
        self._acceptor.certificate = certificate
        if certificate is not None:
            certificate.on_change = self._certificate_changed
        try:
            port = await self._acceptor.open(host, port)
        except OSError as error:
            raise ListenError(explain(f"{host}:{port}", error)) from error
        self._admission.cookie = f"dragoman-{port}"
        self._look_after()
        return port

    def stop_listening(self) -> None:
        """Begin the shutdown: no new connections; responses end once the gateway has disconnected its clients."""
        self._acceptor.close()
        if self._ending is None:
            self._http.stop()
            self._ending = asyncio.ensure_future(self._end_responses())

    async def _end_responses(self) -> None:
        await self._gateway.said_goodbye.wait()
        self._latest = asyncio.get_running_loop().time() + GOODBYE
        self._fronts.close()
        await self._http.end()

    async def close(self) -> None:
        """End all connections, after the gateway was closed; slow readers had the time in which its agents stopped."""
        if self._look is not None:
            self._look.cancel()
        self.stop_listening()
        assert self._ending is not None
        left = max(LAST_ANSWERS, self._latest - asyncio.get_running_loop().time())
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._ending
                    await self._http.end()  # also requests that arrived since
        finally:
            self._http.cancel()
            self._acceptor.cancel()
            for sniffer in list(self._inside):
                sniffer.close()

    def reload(self) -> None:
        """Read certificate and tokens again, without closing connections."""
        if self._acceptor.certificate is not None:
            self._acceptor.certificate.reload()
        self._admission.credentials.refresh()

    def _tokens_changed(self, added: list[str], removed: list[str]) -> None:
        self._gateway.audit.record("tokens_changed", {"added": added, "removed": removed, "by": "file"})

    def _certificate_changed(self, file: Path, before: str, after: str) -> None:
        facts = {"path": str(file), "before": before, "after": after, "by": "file"}
        self._gateway.audit.record("certificate_changed", facts)

    def _look_after(self) -> None:
        """Once a second: reload a changed certificate, disconnect clients whose token or login has ended."""
        self._look = asyncio.get_running_loop().call_later(LOOK_INTERVAL, self._look_after)
        if self._acceptor.certificate is not None:
            self._acceptor.certificate.refresh()
        credentials = self._admission.credentials
        credentials.refresh()
        for client in list(self._gateway.clients):
            identity = client.terms.identity
            if not credentials.stays(identity):
                what = "token" if not credentials.holds(identity) else "login"
                log.info(
                    "client disconnected: its %s is no longer valid", what, extra={"token": identity.name}
                )
                send_out(client.peer.link)

    # -- SnifferHandler

    def enter(self, sniffer: ProtocolSniffer) -> None:
        self._inside.add(sniffer)

    def leave(self, sniffer: ProtocolSniffer) -> None:
        self._inside.discard(sniffer)
        sniffer.on_end()

    def refused(self, status: int) -> None:
        self._metrics.response(status)

    def http(self, transport: asyncio.Transport, early: bytes, sniffer: ProtocolSniffer) -> None:
        self._http.take(transport, early, lambda: self.leave(sniffer))

    def websocket(
        self, transport: asyncio.Transport, visit: Visit, early: bytes, sniffer: ProtocolSniffer
    ) -> None:
        visit = self._proxies.unwrap(visit)
        try:
            self._connection_limit.begin_visit(visit)
            try:
                self._open_socket(transport, visit, early, sniffer)
            except BaseException:
                self._connection_limit.end_visit(visit)
                raise
        except (HttpError, RpcError) as error:
            told = HttpError.of(error)
            about = {"status": told.status, "address": visit.address}
            log.info("websocket refused: %s", told.message, extra=about)
            sniffer.refuse(told.status, told.message, (*told.headers, *strict_transport(visit)))

    def _open_socket(
        self, transport: asyncio.Transport, visit: Visit, early: bytes, sniffer: ProtocolSniffer
    ) -> None:
        """Open a WebSocket link; raises `HttpError` or `RpcError` before it is open."""
        admitted = self._admission.check(visit)
        if isinstance(admitted, Refusal):
            raise HttpError(admitted.status, admitted.message, admitted.headers)
        if self._gateway.closing:
            raise shutting_down()
        rate_limit = self._admission.credentials.rate_limit(admitted)
        rate_limit.request()
        key = visit.header("sec-websocket-key")
        if visit.method != "GET" or not key or visit.header("sec-websocket-version") != "13":
            raise HttpError(426, "WebSocket version 13 is needed", [("sec-websocket-version", "13")])
        with self._shares.reserved(admitted):
            speaker = self._fronts.socket(unquote(visit.path), admitted, rate_limit)
        link = WebSocketLink(
            speaker.handler,
            self._gateway.config.limits.max_message_bytes,
            restarting=lambda: self._gateway.closing,
            initialize_first=speaker.initialize_first,
            ping_interval=self._gateway.config.serve.ping_interval,
            on_end=lambda: self._left(link, sniffer, admitted, visit),
        )
        self._metrics.traffic.opened(link)
        cookie = self._fronts.affinity.header(secure=visit.secure)
        headers = [cookie, *self._admission.renewal(visit, admitted)]
        if visit.subprotocol is not None:
            headers.append(("sec-websocket-protocol", visit.subprotocol))
        log.info("websocket opened", extra={"path": visit.path, "address": visit.address})
        link.open(transport, _switching(key, headers), early)

    def _left(self, link: WebSocketLink, sniffer: ProtocolSniffer, identity: Identity, visit: Visit) -> None:
        self._connection_limit.end_visit(visit)
        self._shares.give_back(identity)
        self._metrics.traffic.closed(link)
        self.leave(sniffer)


def send_out(link: Link) -> None:
    if isinstance(link, CodedLink):
        link.close_with(POLICY_VIOLATION, "the token or login is not valid any more")
    else:
        link.close()


def _switching(key: str, headers: list[tuple[str, str]]) -> bytes:
    more = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return (
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
        f"sec-websocket-accept: {accept_key(key)}\r\n"
        f"acp-connection-id: {secrets.token_urlsafe(24)}\r\n"
        f"{more}\r\n"
    ).encode()
