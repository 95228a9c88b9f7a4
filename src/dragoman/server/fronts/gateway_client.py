"""Gateway clients for requests without a connection of their own: inline clients and REST.

Many requests share one gateway client, so it assigns the ids: replies find their request, and a question of an agent
gets an id that no other gateway client uses. A session is attached while a request listens to it or awaits a reply.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import msgspec
from msgspec import Raw

from dragoman.gateway.access.identity import Identity
from dragoman.gateway.client import ClientConnection, Terms
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.json_types import JsonObject, encode, read_object
from dragoman.gateway.lifecycle.restart_agent import as_error
from dragoman.gateway.ownership.takeover import unknown
from dragoman.gateway.ports.store import LIST_PAGE, StoreError
from dragoman.gateway.rewriting.rewrite import session_of, with_members
from dragoman.gateway.session.session import Session
from dragoman.rpc.peer import CANCEL_REQUEST
from dragoman.rpc.request import OnReply, Reply
from dragoman.server.asgi import shutting_down
from dragoman.server.fronts.session_listeners import SessionListeners
from dragoman.wire import message
from dragoman.wire.errors import RpcError, internal
from dragoman.wire.message import ABSENT

DETACHED = frozenset(
    {"initialize", "authenticate", "logout", "session/new", "session/list", "session/delete"}
)
"""Methods that need no attachment; `session/load` and `session/resume` are not here, but attach by themselves."""


class _Head(msgspec.Struct):
    """The parts of a message that decide where it goes; params are the agent's, of any shape."""

    id: int | None = None
    method: str = ""
    params: Raw = ABSENT


_head = msgspec.json.Decoder(_Head)


class GatewayClient:
    """Implements `Link` and `SplitLink`."""

    backlog = 0  # each listener has back-pressure of its own

    def __init__(
        self, client: ClientConnection, on_end: Callable[[GatewayClient], None] = lambda gateway_client: None
    ) -> None:
        self.client = client
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._ids = itertools.count(1)
        self._waiting: dict[int, OnReply] = {}
        self._listeners: dict[str, SessionListeners] = {}
        self._users: Counter[str] = Counter()
        self._asked: dict[int, SessionListeners] = {}
        self._ready: asyncio.Future[Reply] | None = None
        self._closing = False
        client.peer.link_opened(self)

    # -- asking

    async def ready(self) -> None:
        """Wait for `initialize`, which the first call sends for all."""
        if self._ready is None:
            params = {"protocolVersion": 1, "clientCapabilities": {}}
            self._ready = self.call("initialize", encode(params))
        reply = await asyncio.shield(self._ready)
        if not reply.ok:
            self.close()
            raise error_of(reply)

    def ask(self, method: str, params: bytes, on_reply: OnReply) -> int:
        """Send a request; `on_reply` may be called before this returns."""
        number = next(self._ids)
        self._waiting[number] = on_reply
        self.client.peer.link_messages([message.request(number, method, params)])
        return number

    def call(self, method: str, params: bytes) -> asyncio.Future[Reply]:
        answer: asyncio.Future[Reply] = self._loop.create_future()
        self.ask(method, params, lambda reply: None if answer.done() else answer.set_result(reply))
        return answer

    def forget(self, number: int) -> None:
        """Stop waiting for a reply."""
        self._waiting.pop(number, None)

    async def fetch(self, method: str, params: bytes, session_id: str | None) -> Reply:
        """Send a request about a session, attached to it until the reply."""
        try:
            if session_id is None or method in DETACHED:
                return await self.call(method, params)
            async with self.listening(session_id, comes_back=method in ("session/load", "session/resume")):
                return await self.call(method, params)
        except RpcError as error:
            return Reply.failed(error)
        finally:
            self._tidy()

    def abandon(self, session_id: str | None) -> None:
        """Handle a client that disconnected during its turn (`sessions.on_disconnect`)."""
        gateway = self.client.gateway
        session = self.client.session(session_id) if session_id is not None else None
        keep = gateway.journaling and gateway.config.sessions.on_disconnect == "keep"
        turn = session.turn if session is not None else None
        if turn is not None and turn.client is self.client and not keep:
            turn.session.cancel()

    async def cancel(self, session_id: str | None) -> None:
        """Cancel the turn of a session, also in another process; a session that is not live has none."""
        gateway, bound = self.client.gateway, self.client.bound_agent
        session = gateway.sessions.get(session_id or "")
        if session is not None:
            if bound in (None, session.agent_name):
                session.cancel()
            return
        try:
            known = await gateway.directory.get(session_id or "")
        except StoreError as error:
            raise internal(str(error), error.code) from error
        if known is not None and known.live and bound in (None, known.agent):
            await self.ready()
            async with self.listening(known.id) as listeners:
                if listeners.session is not None:
                    listeners.session.cancel()

    def answer(self, number: int, line: bytes) -> None:
        """Pass on the answer to a question, by the number in its public id."""
        self._asked.pop(number, None)
        self.client.peer.link_messages([with_members(line, id=number)])

    # -- sessions

    @asynccontextmanager
    async def listening(
        self, session_id: str, *, comes_back: bool = False
    ) -> AsyncIterator[SessionListeners]:
        """Stay attached to a session inside the `with`; with `comes_back` a later request attaches it."""
        self._users[session_id] += 1
        try:
            if not comes_back:
                await self.attach(session_id)
            yield self.outlet(session_id)
        finally:
            self._users[session_id] -= 1
            if not self._users[session_id]:
                del self._users[session_id]
            self._tidy()

    async def attach(self, session_id: str, after: int | None = None) -> Session:
        """Attach to a session, resumed from the store if necessary; `after` also replays the events since that one."""
        gateway = self.client.gateway
        session = gateway.sessions.get(session_id)
        gone = session is None or session.orphaned
        if session is None or gone or (after is not None and session.journal is not None):
            session = await self._resume(session_id, after)
        else:
            self.client.check_agent(session.agent_name, session_id)
            session.attach(self.client)
            session.questions.ask_again(self.client)
        self.outlet(session_id).session = session
        return session

    async def _resume(self, session_id: str, after: int | None) -> Session:
        gateway = self.client.gateway
        try:
            known = await gateway.directory.get(session_id)
        except StoreError as error:
            raise internal(str(error), error.code) from error
        if known is None:
            raise unknown(gateway, session_id)
        params: JsonObject = {"sessionId": session_id, "cwd": known.cwd}
        if after is not None:
            params["_meta"] = {"dragoman": {"afterSeq": after}}
        reply = await self.call("session/resume", encode(params))
        if not reply.ok:
            raise error_of(reply)
        session = self.client.session(session_id)
        if session is None:  # closed by another client at the same moment
            raise unknown(gateway, session_id)
        return session

    def _tidy(self) -> None:
        """Detach sessions without a listener: a session without attachments may be parked and unloaded."""
        for session_id, attachment in list(self.client.attachments.items()):
            if not self._users[session_id]:
                attachment.session.detach(self.client)
        for session_id in [key for key in self._listeners if not self._users[key]]:
            del self._listeners[session_id]

    # -- Link

    def outlet(self, session_id: str) -> SessionListeners:
        return self._listeners.setdefault(session_id, SessionListeners())

    def send(self, line: bytes) -> None:
        head = _head.decode(line)
        if not head.method:
            self._answered(head.id, line)
        elif head.method == CANCEL_REQUEST:
            self._withdraw(_request_id(head.params))
        elif head.id is not None:
            self._question(line, head.id, session_of(bytes(head.params)))
        elif (session_id := session_of(bytes(head.params))) in self._listeners:
            self._listeners[session_id].send(line)

    def pause(self) -> None:
        """Nothing to pause: each POST is read as a whole."""

    def resume(self) -> None:
        pass

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        for listeners in self._listeners.values():
            listeners.end()
        waiting, self._waiting = self._waiting, {}
        for on_reply in waiting.values():
            on_reply(Reply.failed(internal("Dragoman is shutting down", "shutdown")))
        self._loop.call_soon(self.client.peer.link_closed, None)
        self._on_end(self)

    def _answered(self, number: int | None, line: bytes) -> None:
        on_reply = self._waiting.pop(number, None) if number is not None else None
        if on_reply is not None:
            envelope = message.decode(line)
            failed = envelope.error is not ABSENT
            on_reply(Reply(error=bytes(envelope.error)) if failed else Reply(result=bytes(envelope.result)))

    def _question(self, line: bytes, number: int, session_id: str | None) -> None:
        listeners = self._listeners.get(session_id or "")
        if listeners is not None:
            # Without a reader the question waits for the next listener, or for another client's answer.
            self._asked[number] = listeners
            listeners.send(with_members(line, id=self.public_id(number)))
        else:
            refusal = message.failure(
                b"%d" % number, internal("The client cannot be asked", "no_client").encode()
            )
            self._loop.call_soon(lambda: self.client.peer.link_messages([refusal]))

    def _withdraw(self, number: int | None) -> None:
        listeners = self._asked.pop(number, None) if number is not None else None
        if listeners is not None and number is not None:
            listeners.send(
                message.notification(CANCEL_REQUEST, encode({"requestId": self.public_id(number)}))
            )

    def public_id(self, number: int) -> str:
        """A question's id, unique among all gateway clients; `InlineFront` parses it."""
        return f"{self.client.key}-{number}"


class GatewayClients:
    """Gateway clients, one for all requests with the same token and agent."""

    def __init__(self, gateway: Gateway, *, start_ahead: bool = True, list_limit: int = LIST_PAGE) -> None:
        """`start_ahead` clients start the agent before it is needed, and know its capabilities."""
        self._gateway = gateway
        self._list_limit = list_limit
        self._start_ahead = start_ahead
        self._shared: dict[tuple[Identity, str | None], GatewayClient] = {}

    def get(self, identity: Identity, agent: str | None) -> GatewayClient:
        identity = replace(identity, login="")  # the gateway client outlives the login of the first request
        key = (identity, agent)
        gateway_client = self._shared.get(key)
        if gateway_client is None:
            client = self._connect(identity, agent, start_ahead=self._start_ahead)
            gateway_client = self._shared[key] = GatewayClient(client, lambda _: self._forget(key))
        return gateway_client

    def apart(self, identity: Identity) -> GatewayClient:
        """A gateway client that is not shared; the caller closes it."""
        return GatewayClient(self._connect(identity, None, start_ahead=False))

    def by_key(self, key: int) -> GatewayClient | None:
        return next((each for each in self._shared.values() if each.client.key == key), None)

    def close(self) -> None:
        for gateway_client in list(self._shared.values()):
            gateway_client.close()

    def _forget(self, key: tuple[Identity, str | None]) -> None:
        self._shared.pop(key, None)

    def _connect(self, identity: Identity, agent: str | None, *, start_ahead: bool) -> ClientConnection:
        if self._gateway.closing:
            raise shutting_down()
        terms = Terms(
            agent=agent,
            keep_sessions=True,
            start_ahead=start_ahead,
            identity=identity,
            list_limit=self._list_limit,
        )
        return self._gateway.connect(terms)


def _request_id(params: Raw) -> int | None:
    """The number of the withdrawn question."""
    number = read_object(params).get("requestId")
    return number if isinstance(number, int) else None


error_of = as_error
"""The error in a reply of the gateway or the agent."""
