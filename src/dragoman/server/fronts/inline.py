"""`/acp/inline` (G-131): the reply to a POST is in its HTTP response, for a prompt as an event stream.

There is no connection: nothing has to be initialized, and a session is known by its id alone, also after a restart of
the gateway. Events between prompts are on `GET /acp/events?session=`. An agent's question is an event with an id of its
own; its answer is POSTed like every message.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable

from dragoman.gateway.access.identity import Identity
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.json_types import encode
from dragoman.gateway.rewriting.rewrite import session_of
from dragoman.rpc.request import Reply
from dragoman.server import limits
from dragoman.server.asgi import HttpError, Request, Response
from dragoman.server.fronts.event_stream import EventStream
from dragoman.server.fronts.shared_client import SharedClient, SharedClients
from dragoman.server.fronts.streamable import send_events
from dragoman.wire import message
from dragoman.wire.errors import INVALID_REQUEST, Malformed, RpcError, invalid_params
from dragoman.wire.message import ABSENT, EMPTY, Envelope

log = logging.getLogger(__name__)

STREAMED = frozenset({"session/prompt", "session/load"})
"""Methods that send updates before their response."""

LISTED = 1000
"""Sessions in a `session/list` response: clients of this protocol do not request further pages."""

_QUESTION_ID = re.compile(r"(\d{1,12})-(\d{1,12})")
_EVENT_ID = re.compile(r"(\d{1,15})(?:\.\d{1,15}-[0-9a-f]{8})?", re.ASCII)


class InlineFront:
    def __init__(
        self,
        gateway: Gateway,
        agent_of: Callable[[str], str | None],
        lapsed: Callable[[Identity], str | None],
    ) -> None:
        """`agent_of` returns the agent that a path names, or raises for an unknown path.

        `lapsed` says why a token is no longer valid.
        """
        self._gateway = gateway
        self._agent_of = agent_of
        self._gateway_clients = SharedClients(gateway, lapsed, list_limit=LISTED)
        self._watchers: dict[int, SharedClient] = {}

    # -- POST

    async def post(self, request: Request) -> Response | None:
        request.require_json()
        body = await request.message(self._gateway.config.limits.max_message_bytes)
        try:
            envelope = _read(body)
        except Malformed as error:
            status = 501 if message.is_batch(body) else 400
            return Response(status, message.failure(error.id, error.as_error().encode()))
        if not envelope.method:
            return self._answer(request.identity, envelope)
        gateway_client = self._gateway_clients.get(request.identity, self._agent_of(request.path))
        gateway_client.client.check(envelope.method)
        params = EMPTY if envelope.params is ABSENT else bytes(envelope.params)
        if envelope.id is ABSENT:
            await self._notify(gateway_client, envelope.method, params)
            return Response(202)
        try:
            async with asyncio.timeout(limits.INITIALIZE_TIMEOUT):
                await gateway_client.ready()
        except TimeoutError as error:
            raise HttpError(504, "The agent did not start in time.") from error
        except RpcError as error:
            return _response(envelope, Reply.failed(error))
        if envelope.method in STREAMED:
            return await self._stream(request, gateway_client, envelope, params)
        try:
            return _response(envelope, await self._ask(gateway_client, envelope.method, params))
        except Malformed as error:
            return _response(envelope, Reply.failed(error.as_error()))

    async def _ask(self, gateway_client: SharedClient, method: str, params: bytes) -> Reply:
        session_id = session_of(params)
        if method == "session/cancel":
            try:
                await gateway_client.cancel(session_id)
            except RpcError as error:
                return Reply.failed(error)
            return Reply(result=EMPTY)
        if method == "initialize":
            # Clients of this protocol may leave the version out; a wrong one is refused as usual.
            given = message.members(params)
            params = encode({"protocolVersion": 1, **given})
        return await gateway_client.fetch(method, params, session_id)

    async def _stream(
        self, request: Request, gateway_client: SharedClient, envelope: Envelope, params: bytes
    ) -> Response | None:
        session_id = session_of(params)
        try:
            if session_id is None:
                raise invalid_params("sessionId is required", "sessionId")
            async with gateway_client.listening(
                session_id, comes_back=envelope.method == "session/load"
            ) as listeners:
                stream = listeners.listen()
                try:
                    return await self._converse(request, gateway_client, stream, envelope, params)
                finally:
                    listeners.stop()
        except RpcError as error:
            return _response(envelope, Reply.failed(error))

    async def _converse(
        self,
        request: Request,
        gateway_client: SharedClient,
        stream: EventStream,
        envelope: Envelope,
        params: bytes,
    ) -> Response | None:
        """Send the request; an immediate reply is a plain response, otherwise an event stream ends with the reply."""
        answer: Reply | None = None
        streaming = False

        def answered(reply: Reply) -> None:
            nonlocal answer
            answer = reply
            if streaming:
                stream.send(_line(envelope, reply))
                stream.close()

        number = gateway_client.ask(envelope.method, params, answered)
        if answer is not None:
            return _response(envelope, answer)
        streaming = True
        try:
            await send_events(request, stream, [], self._gateway.config.serve.keep_alive)
        finally:
            if answer is None:
                gateway_client.peer.forget(number)
                gateway_client.abandon(session_of(params))
        return None

    async def _notify(self, gateway_client: SharedClient, method: str, params: bytes) -> None:
        session_id = session_of(params)
        if method == "session/cancel":
            await gateway_client.cancel(session_id)
        elif session_id in self._gateway.sessions:
            async with gateway_client.listening(session_id):
                gateway_client.peer.notify(method, params)

    def _answer(self, identity: Identity, envelope: Envelope) -> Response:
        """Pass on the answer to an agent's question; its id names the gateway client, whose token must be the same."""
        key = message.id_key(envelope.id) if envelope.id is not ABSENT else None
        found = _QUESTION_ID.fullmatch(str(key[1])) if key is not None else None
        owner = int(found[1]) if found is not None else -1
        gateway_client = self._watchers.get(owner) or self._gateway_clients.by_key(owner)
        if gateway_client is None or found is None or gateway_client.client.terms.identity != identity:
            raise HttpError(404, "There is no such question; it may have been answered already.")
        gateway_client.answer(int(found[2]), envelope)
        return Response(202)

    # -- GET /acp/events

    async def events(self, request: Request) -> None:
        """Stream a session's events until the reader disconnects, from `Last-Event-ID` on if it is sent."""
        request.require_event_reader()
        session_id = request.query("session")
        if not session_id:
            raise HttpError(400, "Which session? Ask for /acp/events?session=ID.")
        after = _position(request.header("last-event-id"))
        if len(self._watchers) >= limits.MAX_HTTP_CONNECTIONS:
            raise HttpError(503, "There are too many streams.", [("retry-after", "30")])
        watcher = self._gateway_clients.apart(request.identity)
        self._watchers[watcher.client.key] = watcher
        try:
            await self._watch(request, watcher, session_id, after)
        finally:
            del self._watchers[watcher.client.key]
            watcher.close()

    async def _watch(
        self, request: Request, watcher: SharedClient, session_id: str, after: int | None
    ) -> None:
        await watcher.ready()
        async with watcher.listening(session_id, comes_back=True) as listeners:
            stream = listeners.listen()
            listeners.ends_with_session = True
            await watcher.attach(session_id, after)
            await send_events(request, stream, [], self._gateway.config.serve.keep_alive)

    def close(self) -> None:
        self._gateway_clients.close()
        for watcher in list(self._watchers.values()):
            watcher.close()


def _read(body: bytes) -> Envelope:
    if message.is_batch(body):
        raise Malformed(INVALID_REQUEST, "Batches are not accepted here: POST one message at a time")
    envelope = message.decode(body)
    id = message.find_id(body)
    if envelope.jsonrpc != "2.0":
        raise Malformed(INVALID_REQUEST, 'Invalid request: "jsonrpc" must be "2.0"', id)
    if envelope.id is not ABSENT and message.id_key(envelope.id) is None:
        raise Malformed(INVALID_REQUEST, "Invalid request: id must be a string, a number or null")
    if not envelope.method and envelope.result is ABSENT and envelope.error is ABSENT:
        raise Malformed(INVALID_REQUEST, "Invalid request: no method, result or error", id)
    return envelope


def _line(envelope: Envelope, reply: Reply) -> bytes:
    id = bytes(envelope.id)
    return message.response(id, reply.result) if reply.ok else message.failure(id, reply.error)


def _response(envelope: Envelope, reply: Reply) -> Response:
    return Response(200, _line(envelope, reply))


def _position(last_id: str) -> int | None:
    if not last_id:
        return None
    found = _EVENT_ID.fullmatch(last_id)
    if found is None:
        raise HttpError(400, "Last-Event-ID is not the id of an event of this stream.")
    return int(found[1])
