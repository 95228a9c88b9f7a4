"""Gateway clients for requests without a connection of their own: inline clients and REST.

Many requests share one gateway client, so a question of an agent gets an id that no other gateway client uses. A
session is attached while a request listens to it or awaits a reply; what comes for a session without a listener is
dropped.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from msgspec import Raw

from dragoman.gateway.access.client import Terms
from dragoman.gateway.access.identity import Identity
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.gateway_client import GatewayClient
from dragoman.gateway.json_types import JsonObject, encode
from dragoman.gateway.ownership.takeover import unknown
from dragoman.gateway.ports.store import LIST_PAGE, StoreError
from dragoman.gateway.rewriting.rewrite import session_of
from dragoman.gateway.session.session import Session
from dragoman.rpc.peer import CANCEL_REQUEST
from dragoman.rpc.request import Reply, Request
from dragoman.server.asgi import shutting_down
from dragoman.server.fronts.event_stream import EventStream
from dragoman.wire import message
from dragoman.wire.errors import RpcError, internal, invalid_request
from dragoman.wire.message import ABSENT, Envelope

if TYPE_CHECKING:
    from dragoman.gateway.agent import AgentConnection

DETACHED = frozenset(
    {"initialize", "authenticate", "logout", "session/new", "session/list", "session/delete"}
)
"""Methods that need no attachment; `session/load` and `session/resume` are not here, but attach by themselves."""

_NO_ERROR = (ABSENT, Raw(b"null"))


class Sink(Protocol):
    """Receives the messages of a session."""

    @property
    def writable(self) -> bool: ...

    def send(self, message: bytes) -> None: ...

    def send_event(self, seq: int, message: bytes) -> None: ...

    def close(self) -> None: ...


class SessionListeners:
    """Implements `Outlet`."""

    def __init__(self) -> None:
        self.on_room: Callable[[], None] | None = None
        self.sink: Sink | None = None
        self.session: Session | None = None
        self.ends_with_session = False
        self._holding = False
        self._held: AgentConnection | None = None
        """The agent that is paused; the session may have another one when it is resumed."""

    def listen(self) -> EventStream:
        """Send the session's messages to a new stream from now on."""
        stream = EventStream(self._changed, keep=0)
        stream.on_room = self._room
        self.hear(stream)
        return stream

    def hear(self, sink: Sink) -> None:
        """Set the sink; raises if there is one, as a session has one turn at a time."""
        if self.sink is not None:
            raise invalid_request("A prompt is already in flight in this session", "prompt_in_flight")
        self.sink = sink

    def stop(self) -> None:
        """Remove the sink; an agent that waited for its reader continues."""
        self.sink = None
        self._hold(False)
        self._room()

    def end(self) -> None:
        """Close the sink: no more messages will come."""
        if self.sink is not None:
            self.sink.close()

    # -- Outlet

    def send(self, message: bytes) -> None:
        if self.sink is not None:
            self.sink.send(message)

    def send_event(self, seq: int, message: bytes) -> None:
        if self.sink is not None:
            self.sink.send_event(seq, message)

    @property
    def writable(self) -> bool:
        return self.sink is None or self.sink.writable

    def detached(self) -> None:
        if self.ends_with_session:
            self.end()

    def _room(self) -> None:
        if self.on_room is not None:
            self.on_room()

    def _changed(self, size: int) -> None:
        self._hold(not self.writable)

    def _hold(self, hold: bool) -> None:
        """Pause or resume the agent for a slow reader if there is no journal to read on from (G-086)."""
        if hold == self._holding:
            return
        self._holding = hold
        held, self._held = self._held, None
        if held is not None:
            held.release(self)
        session = self.session
        if not hold or session is None or session.agent is None:
            return
        if session.journal is None or session.journal.broken:
            self._held = session.agent
            self._held.hold(self)


class SharedClient(GatewayClient):
    """Implements `SplitLink`."""

    def __init__(self, on_end: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._on_end = on_end
        self._listeners: dict[str, SessionListeners] = {}
        self._users: Counter[str] = Counter()
        self._open_questions: dict[int, Request] = {}
        """Questions that a listener was sent, by their numbers."""
        self._ready: asyncio.Future[Reply] | None = None

    # -- asking

    async def ready(self) -> None:
        """Wait for `initialize`, which the first call sends for all."""
        if self._ready is None:
            self._ready = self.initialize({})
        reply = await asyncio.shield(self._ready)
        if not reply.ok:
            self.close()
            raise reply.as_error()

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
        if session is not None and not keep:
            session.prompts.withdraw_of(self.client)
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

    def answer(self, number: int, envelope: Envelope) -> None:
        """Pass on the answer to a question, by the number in its public id."""
        request = self._open_questions.pop(number, None)
        if request is not None:
            failed = envelope.error not in _NO_ERROR
            result = b"null" if envelope.result is ABSENT else bytes(envelope.result)
            request.answer(Reply(error=bytes(envelope.error)) if failed else Reply(result=result))

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
        await self.result("session/resume", params)
        session = self.client.session(session_id)
        if session is None:  # closed by another client at the same moment
            raise unknown(gateway, session_id)
        return session

    def _tidy(self) -> None:
        """Detach sessions without a listener: a session without attachments may be parked and unloaded."""
        for session_id in list(self.client.attachments):
            session = self.client.session(session_id)
            if session is not None and not self._users[session_id]:
                session.detach(self.client)
        for session_id in [key for key in self._listeners if not self._users[key]]:
            del self._listeners[session_id]

    # -- SplitLink

    def outlet(self, session_id: str) -> SessionListeners:
        return self._listeners.setdefault(session_id, SessionListeners())

    # -- Receiver

    def peer_request(self, request: Request) -> None:
        listeners = self._listeners.get(session_of(request.params) or "")
        if listeners is None:
            raise internal("The client cannot be asked", "no_client")
        # Without a reader the question waits for the next listener, or for another client's answer.
        number = int(request.id)
        self._open_questions[number] = request
        request.on_cancel = lambda: self._withdraw(number, listeners)
        listeners.send(message.request(encode(self.public_id(number)), request.method, request.params))

    def _withdraw(self, number: int, listeners: SessionListeners) -> None:
        request = self._open_questions.pop(number, None)
        if request is not None:
            request.abandon()
            listeners.send(
                message.notification(CANCEL_REQUEST, encode({"requestId": self.public_id(number)}))
            )

    def peer_notification(self, method: str, params: bytes) -> None:
        listeners = self._listeners.get(session_of(params) or "")
        if listeners is not None:
            listeners.send(message.notification(method, params))

    def peer_closed(self, reason: str | None) -> RpcError:
        for listeners in self._listeners.values():
            listeners.end()
        self._on_end()
        return super().peer_closed(reason)

    def public_id(self, number: int) -> str:
        """A question's id, unique among all gateway clients; `InlineFront` parses it."""
        return f"{self.client.key}-{number}"


class SharedClients:
    """Gateway clients, one for all requests with the same token and agent."""

    def __init__(
        self,
        gateway: Gateway,
        lapsed: Callable[[Identity], str | None],
        *,
        start_ahead: bool = True,
        list_limit: int = LIST_PAGE,
    ) -> None:
        """`lapsed` says why a token is no longer valid; `start_ahead` clients start the agent before it is needed."""
        self._gateway = gateway
        self._lapsed = lapsed
        self._list_limit = list_limit
        self._start_ahead = start_ahead
        self._shared: dict[tuple[Identity, str | None], SharedClient] = {}

    def get(self, identity: Identity, agent: str | None) -> SharedClient:
        identity = replace(identity, login="")  # the gateway client outlives the login of the first request
        key = (identity, agent)
        known = self._shared.get(key)
        if known is None:
            known = SharedClient(lambda: self._forget(key))
            self._connect(known, identity, agent, start_ahead=self._start_ahead)
            self._shared[key] = known
        return known

    def apart(self, identity: Identity) -> SharedClient:
        """A gateway client that is not shared; the caller closes it."""
        client = SharedClient()
        self._connect(client, identity, None, start_ahead=False)
        return client

    def by_key(self, key: int) -> SharedClient | None:
        return next((each for each in self._shared.values() if each.client.key == key), None)

    def close(self) -> None:
        for client in list(self._shared.values()):
            client.close()

    def _forget(self, key: tuple[Identity, str | None]) -> None:
        self._shared.pop(key, None)

    def _connect(
        self, client: SharedClient, identity: Identity, agent: str | None, *, start_ahead: bool
    ) -> None:
        if self._gateway.closing:
            raise shutting_down()
        terms = Terms(
            agent=agent,
            keep_sessions=True,
            start_ahead=start_ahead,
            identity=identity,
            list_limit=self._list_limit,
            lapsed=partial(self._lapsed, identity),
        )
        client.connect(self._gateway, terms)
