"""An older HTTP form of ACP (G-131): POST to `/acp/rpc?client_id=`, all messages come on `/acp/sse?client_id=`.

The client chooses its id, which is no credential; the token is. A POST is answered with a status only. Either of the
two may come first. Event ids are cursors: a reader that reconnects with one gets the messages after it. If they are no
longer stored, the response is 410, and the client loads its sessions again.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable

from dragoman.gateway.access.identity import Identity
from dragoman.gateway.client import ClientConnection
from dragoman.server import limits
from dragoman.server.asgi import HttpError, Request, Response
from dragoman.server.fronts.event_stream import EventStream
from dragoman.server.fronts.streamable import SWEEP, send_events
from dragoman.server.listen.token_shares import TokenShares
from dragoman.wire import message
from dragoman.wire.errors import Malformed, RpcError
from dragoman.wire.limits import MAX_BATCH_ENTRIES

log = logging.getLogger(__name__)

_CLIENT_ID = re.compile(r"[\x21-\x7e]{1,128}")


class RpcClient:
    """Implements `Link`: all sessions of a client on one stream."""

    def __init__(self, client: ClientConnection, on_end: Callable[[RpcClient], None]) -> None:
        self.client = client
        self.backlog = 0
        self.stream = EventStream(self._changed, keep=limits.KEPT_ON_ONE_STREAM)
        self._loop = asyncio.get_running_loop()
        self._on_end = on_end
        self._last_use = self._loop.time()
        self._congested = False
        self._closing = False
        client.peer.link_opened(self)

    def touch(self) -> None:
        self._last_use = self._loop.time()

    @property
    def idle(self) -> bool:
        return not self.stream.occupied and self._loop.time() - self._last_use > limits.HTTP_IDLE

    def rewind(self, last_id: str) -> None:
        missed = self.stream.missed(last_id)
        if missed is None or not self.stream.keeps_all_after(last_id):
            raise HttpError(410, "What came after this event is not kept; load your sessions again.")
        self.stream.drop()
        for kept in missed[1]:
            self.stream.send_again(kept)

    # -- Link

    def send(self, message: bytes) -> None:
        if not self._closing:
            self.stream.send(message)

    def pause(self) -> None:
        """Nothing to pause: each POST is read as a whole."""

    def resume(self) -> None:
        pass

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        self.stream.close()
        self._loop.call_soon(self.client.peer.link_closed, None)
        self._on_end(self)

    def _changed(self, size: int) -> None:
        self.backlog += size
        congested = self.backlog > limits.STREAM_BYTES
        if congested != self._congested:
            self._congested = congested
            self._loop.call_soon(self.client.peer.link_writable, not congested)
        if self.backlog > limits.MAX_UNREAD_BYTES and not self._closing:
            log.warning("http client reads nothing, closing", extra={"client": self.client.key})
            self._loop.call_soon(self.close)


class RpcFront:
    def __init__(
        self, connect: Callable[[Identity], ClientConnection], max_bytes: int, keep_alive: float
    ) -> None:
        self._connect = connect
        self._max_bytes = max_bytes
        self._keep_alive = keep_alive
        self._clients: dict[tuple[Identity, str, str], RpcClient] = {}
        """By token, login and client id: a guessed id of another token gives a separate connection."""
        self._shares = TokenShares("clients", limits.MAX_HTTP_CONNECTIONS, limits.HTTP_CONNECTIONS_TOGETHER)
        self._sweeper: asyncio.TimerHandle | None = None

    async def post(self, request: Request) -> Response:
        request.require_json()
        body = await request.message(self._max_bytes)
        try:
            if message.is_batch(body):
                self._count(request, len(message.decode_batch(body)))
            else:
                message.decode(body)
        except Malformed as error:
            raise HttpError(400, error.message) from error
        client = self._client(request)
        client.client.peer.link_messages([body])
        return Response(202)

    def _count(self, request: Request, entries: int) -> None:
        """Count each message of a batch as a request; the first was counted with the POST."""
        try:
            for _ in range(1, min(entries, MAX_BATCH_ENTRIES)):
                if request.rate_limit is not None:
                    request.rate_limit.request()
        except RpcError as error:
            raise HttpError.refused(error) from error

    async def listen(self, request: Request) -> None:
        request.require_event_reader()
        client = self._client(request)
        last_id = request.header("last-event-id")
        if client.stream.occupied:
            if not last_id:
                raise HttpError(409, "This stream is being read already.")
            client.stream.displace()
        if last_id:
            client.rewind(last_id)
        await send_events(request, client.stream, [], self._keep_alive)
        client.touch()

    def close(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
        for client in list(self._clients.values()):
            client.close()

    def _client(self, request: Request) -> RpcClient:
        client_id = request.query("client_id") or ""
        if not _CLIENT_ID.fullmatch(client_id):
            raise HttpError(400, "client_id is missing: up to 128 visible ASCII characters of your choice.")
        key = (request.identity, request.identity.login, client_id)
        client = self._clients.get(key)
        if client is None:
            with self._shares.reserved(request.identity):
                client = RpcClient(self._connect(request.identity), lambda _: self._forget(key))
            self._clients[key] = client
            self._sweep_later()
        client.touch()
        return client

    def _forget(self, key: tuple[Identity, str, str]) -> None:
        if self._clients.pop(key, None) is not None:
            self._shares.give_back(key[0])

    def _sweep_later(self) -> None:
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(SWEEP, self._sweep)

    def _sweep(self) -> None:
        self._sweeper = None
        for client in list(self._clients.values()):
            if client.idle:
                log.info("http client is gone", extra={"client": client.client.key})
                client.close()
        if self._clients:
            self._sweep_later()
