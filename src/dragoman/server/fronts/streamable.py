"""ACP over Streamable HTTP: POST a message, GET a stream, DELETE the connection (G-120 to G-125)."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from functools import partial

from dragoman.gateway.access.identity import Identity
from dragoman.gateway.client import ClientConnection
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.rewriting.rewrite import session_of
from dragoman.server import limits
from dragoman.server.affinity import Affinity
from dragoman.server.asgi import EVENTS, HttpError, Request, Response, shutting_down
from dragoman.server.fronts.event_stream import EventStream
from dragoman.server.fronts.http_link import HttpLinks
from dragoman.server.fronts.streamable_client import OpenRequest, StreamableClient
from dragoman.wire import message
from dragoman.wire.errors import Malformed
from dragoman.wire.message import ABSENT, Envelope

CONNECTION = "acp-connection-id"
SESSION = "acp-session-id"
UNKNOWN_SESSION = "unknown_session"

NEEDS_SESSION = frozenset(
    {
        "session/prompt",
        "session/cancel",
        "session/close",
        "session/set_mode",
        "session/set_model",
        "session/set_config_option",
    }
)
"""Methods allowed only with `Acp-Session-Id`, and only for sessions of the connection (G-122)."""


class StreamableHttp:
    def __init__(
        self, gateway: Gateway, connect: Callable[[str, Identity], ClientConnection], affinity: Affinity
    ) -> None:
        """`connect` makes a client for a path and an identity, or raises for an unknown path."""
        self._affinity = affinity
        self._gateway = gateway
        self._connect = connect
        self._connections: HttpLinks[str, StreamableClient] = HttpLinks("connections")
        self._methods: dict[str, Callable[[Request], Awaitable[Response | None]]] = {
            "POST": self._post,
            "GET": self._get,
            "DELETE": self._delete,
        }

    async def answer(self, request: Request) -> Response | None:
        method = self._methods.get(request.method)
        if method is None:
            raise HttpError(405, "GET, POST and DELETE only.", [("allow", "GET, POST, DELETE")])
        return await method(request)

    def close(self) -> None:
        self._connections.close()

    # -- POST

    async def _post(self, request: Request) -> Response:
        request.require_json()
        line = await request.message(self._gateway.config.limits.max_message_bytes)
        envelope = _read(line)
        connection_id = request.header(CONNECTION)
        if envelope.method == "initialize" and envelope.id is not ABSENT:
            if connection_id:
                raise HttpError(400, "initialize opens a connection: send it without Acp-Connection-Id.")
            return await self._initialize(request, envelope, line)
        connection = self._connection(request)
        if envelope.method:  # its role and quota (403, 429); answers to questions need no role
            connection.client.check(envelope.method)
        open_request = _as_open_request(request, envelope)
        if open_request.method in NEEDS_SESSION:
            if open_request.header is None:
                raise HttpError(400, f"{open_request.method} needs the header Acp-Session-Id.")
            if not connection.knows(open_request.header):
                raise HttpError(
                    404, "This connection has no such session; load or resume it first.", code=UNKNOWN_SESSION
                )
        connection.receive(envelope.id, open_request, line)
        return Response(202)

    async def _initialize(self, request: Request, envelope: Envelope, line: bytes) -> Response:
        if self._gateway.closing:
            raise shutting_down()
        with self._connections.shares.reserved(request.identity):
            client = self._connect(request.path, request.identity)
        id = secrets.token_urlsafe(24)
        connection = StreamableClient(id, client, request.path, partial(self._connections.ended, id))
        self._connections.add(id, connection)
        connection.receive(envelope.id, OpenRequest("initialize"), line)
        try:
            async with asyncio.timeout(limits.INITIALIZE_TIMEOUT):
                answer = await connection.initialized
        except TimeoutError as error:
            connection.close()
            raise HttpError(504, "The agent did not start in time.") from error
        except asyncio.CancelledError:
            connection.close()
            if self._gateway.closing:
                raise shutting_down() from None
            raise
        if "error" in message.members(answer):
            connection.close()
            return Response(200, answer)
        cookie = self._affinity.header(secure=request.visit.secure)
        return Response(200, answer, headers=((CONNECTION, connection.id), cookie))

    # -- GET

    async def _get(self, request: Request) -> Response | None:
        if EVENTS not in request.header("accept"):
            raise HttpError(406, "GET is a stream of events: send Accept: text/event-stream.")
        connection = self._connection(request)
        session_id = request.header(SESSION) or None
        if session_id is not None and not connection.knows(session_id):
            await self._check_exists(session_id)
        stream = connection.stream(session_id)
        last_id = request.header("last-event-id")
        if stream.occupied:
            # A reader that sends an id has lost its stream, even if the server has not noticed yet.
            if not last_id:
                raise HttpError(409, "This stream is being read already.")
            stream.displace()
        if last_id:
            connection.rewind(session_id, last_id)
        keep_alive = self._gateway.config.serve.keep_alive
        try:
            await send_events(request, stream, [(CONNECTION, connection.id)], keep_alive)
        finally:
            if session_id is not None:
                connection.tidy(session_id)
        connection.touch()
        return None

    async def _check_exists(self, session_id: str) -> None:
        """Raise 404 for an unknown session; a stream may be opened before its session is loaded (G-121)."""
        if session_id in self._gateway.sessions:
            return
        if await self._gateway.directory.get(session_id) is None:
            raise HttpError(404, "There is no such session.", code=UNKNOWN_SESSION)

    # -- DELETE

    async def _delete(self, request: Request) -> Response:
        self._connection(request).close()
        return Response(202)

    # -- connections

    def _connection(self, request: Request) -> StreamableClient:
        connection_id = request.header(CONNECTION)
        if not connection_id:
            raise HttpError(400, "The header Acp-Connection-Id is missing; initialize gives one.")
        connection = self._connections.get(connection_id)
        # The id is no credential (G-129): another token's connection counts as unknown.
        theirs = connection is not None and connection.client.terms.identity == request.identity
        if connection is None or not theirs or connection.path != request.path:
            raise HttpError(
                404,
                "There is no such connection; initialize anew, then resume your sessions.",
                code="unknown_connection",
            )
        connection.touch()
        return connection


async def send_events(
    request: Request, stream: EventStream, headers: list[tuple[str, str]], keep_alive: float
) -> None:
    """Send a stream until the reader disconnects, another reader replaces it, or the stream ends.

    After `keep_alive` seconds of silence a comment keeps proxies from closing the connection (G-125).
    """
    if request.method == "HEAD":  # only checks that the stream exists
        await request.respond(Response(200, headers=(("content-type", EVENTS), *headers)))
        return
    reader = stream.occupy()
    gone = asyncio.ensure_future(request.wait_gone())
    gone.add_done_callback(lambda _: stream.wake())
    try:
        fixed = [("content-type", EVENTS), ("cache-control", "no-cache"), ("x-accel-buffering", "no")]
        await request.start(200, [*fixed, *headers])
        await request.write(b": open\n\n")
        while stream.is_held_by(reader) and not gone.done():
            data = stream.take()
            if data:
                await request.write(data)
                stream.relieve()
            elif stream.closed:
                break
            elif not await stream.wait(keep_alive):
                await request.write(b": still here\n\n")
        if not gone.done():
            await request.write(b"", more=False)
    finally:
        gone.cancel()
        stream.vacate(reader)


def _read(body: bytes) -> Envelope:
    if message.is_batch(body):
        raise HttpError(501, "Batches are not accepted here: POST one message at a time.")
    try:
        envelope = message.decode(body)
    except Malformed as error:
        raise HttpError(400, error.message) from error
    if envelope.jsonrpc != "2.0":
        raise HttpError(400, 'Not a JSON-RPC message: "jsonrpc" must be "2.0".')
    if envelope.id is not ABSENT and message.id_key(envelope.id) is None:
        raise HttpError(400, "Not a JSON-RPC message: its id must be a string, a number or null.")
    return envelope


def _as_open_request(request: Request, envelope: Envelope) -> OpenRequest:
    """The method and the session of a posted message; raises `HttpError` if header and params disagree."""
    header = request.header(SESSION) or None
    session_id = session_of(bytes(envelope.params)) if envelope.params is not ABSENT else None
    if header is not None and session_id is not None and header != session_id:
        raise HttpError(400, "Acp-Session-Id and params.sessionId name different sessions.")
    return OpenRequest(envelope.method, header, session_id)
