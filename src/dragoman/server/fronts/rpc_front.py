"""An older HTTP form of ACP (G-131): POST to `/acp/rpc?client_id=`, all messages come on `/acp/sse?client_id=`.

The client chooses its id, which is no credential; the token is. A POST is answered with a status only. Either of the
two may come first. Event ids are cursors: a reader that reconnects with one gets the messages after it. If they are no
longer stored, the response is 410, and the client loads its sessions again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial

from dragoman.gateway.access.identity import Identity
from dragoman.gateway.client import ClientConnection
from dragoman.server import limits
from dragoman.server.asgi import HttpError, Request, Response
from dragoman.server.fronts.event_stream import EventStream
from dragoman.server.fronts.http_link import HttpLink, HttpLinks
from dragoman.server.fronts.streamable import send_events
from dragoman.wire import message
from dragoman.wire.errors import Malformed
from dragoman.wire.limits import MAX_BATCH_ENTRIES

_CLIENT_ID = re.compile(r"[\x21-\x7e]{1,128}")


class RpcClient(HttpLink):
    """Implements `Link`: all sessions of a client on one stream."""

    def __init__(self, client: ClientConnection, on_end: Callable[[], None]) -> None:
        super().__init__(client, on_end)
        self.stream = EventStream(self._changed, keep=limits.KEPT_ON_ONE_STREAM)
        client.peer.link_opened(self)

    def streams(self) -> Iterable[EventStream]:
        return (self.stream,)

    def rewind(self, last_id: str) -> None:
        missed = self.stream.missed(last_id)
        if missed is None or not self.stream.keeps_all_after(last_id):
            raise HttpError(410, "What came after this event is not kept; load your sessions again.")
        self.stream.drop()
        for kept in missed[1]:
            self.stream.send_again(kept)

    def send(self, message: bytes) -> None:
        if not self._closing:
            self.stream.send(message)


class RpcFront:
    def __init__(
        self, connect: Callable[[Identity], ClientConnection], max_bytes: int, keep_alive: float
    ) -> None:
        self._connect = connect
        self._max_bytes = max_bytes
        self._keep_alive = keep_alive
        self._clients: HttpLinks[tuple[Identity, str, str], RpcClient] = HttpLinks("clients")
        """By token, login and client id: a guessed id of another token gives a separate connection."""

    async def post(self, request: Request) -> Response:
        request.require_json()
        body = await request.message(self._max_bytes)
        try:
            if message.is_batch(body):
                self._count_batch(request, len(message.decode_batch(body)))
            else:
                message.decode(body)
        except Malformed as error:
            raise HttpError(400, error.message) from error
        client = self._client(request)
        client.client.peer.link_messages([body])
        return Response(202)

    def _count_batch(self, request: Request, entries: int) -> None:
        """Count each message of a batch as a request; the first was counted with the POST."""
        for _ in range(1, min(entries, MAX_BATCH_ENTRIES)):
            if request.rate_limit is not None:
                request.rate_limit.request()

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
        self._clients.close()

    def _client(self, request: Request) -> RpcClient:
        client_id = request.query("client_id") or ""
        if not _CLIENT_ID.fullmatch(client_id):
            raise HttpError(400, "client_id is missing: up to 128 visible ASCII characters of your choice.")
        key = (request.identity, request.identity.login, client_id)
        client = self._clients.get(key)
        if client is None:
            with self._clients.shares.reserved(request.identity):
                client = RpcClient(self._connect(request.identity), partial(self._clients.ended, key))
            self._clients.add(key, client)
        client.touch()
        return client
