"""One client connection: its methods, its sessions, its end. Everything that the client sends arrives here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Raw

from dragoman.gateway.access import quotas
from dragoman.gateway.access.capabilities import ClientCapabilities
from dragoman.gateway.access.handshake import Handshake
from dragoman.gateway.access.identity import LOCAL, Identity
from dragoman.gateway.access.login import Login
from dragoman.gateway.access.rate_limit import RateLimit
from dragoman.gateway.agent import AgentConnection
from dragoman.gateway.delivery.attachment import Attachment
from dragoman.gateway.delivery.backpressure import Backpressure
from dragoman.gateway.json_types import JsonObject, decode_object, encode, own_meta
from dragoman.gateway.lifecycle import create, listing, load
from dragoman.gateway.ports.store import LIST_PAGE, StoreError
from dragoman.gateway.ports.witness import TRACE
from dragoman.gateway.rewriting.rewrite import meta_of, one_session, session_in, session_of
from dragoman.gateway.session.questions.question import ELICITATION
from dragoman.gateway.session.session import Session
from dragoman.gateway.session.settings import requests as settings
from dragoman.gateway.session.stream import settle
from dragoman.gateway.session.turn import CANCELLED
from dragoman.log import LOG_CONTEXT
from dragoman.rpc.peer import Peer
from dragoman.rpc.request import Request
from dragoman.wire import limits, message
from dragoman.wire.errors import (
    Malformed,
    RpcError,
    forbidden,
    internal,
    invalid_params,
    invalid_request,
    method_not_found,
    session_not_found,
)

if TYPE_CHECKING:
    from dragoman.gateway.gateway import Gateway

log = logging.getLogger(__name__)

SETUP_TIMEOUT = 5.0
"""Seconds that a request which waits for an agent has after the client closed its side."""
LOGGED_MALFORMED = 20
"""Malformed messages logged per client: each is answered, but they must not fill the log."""
GOODBYE_TIMEOUT = 2.0
"""Seconds that turns have to end after their client left, before their agents are ended (G-113)."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a client's connection, set by its transport."""

    agent: str | None = None
    """The agent of all its sessions."""
    token: str | None = None
    """The required value of `_meta.dragoman.token` in `initialize`."""
    refusal: str | None = None
    """Why the client is refused, whatever token it sends."""
    repeat_initialize: bool = True
    """stdio answers a second `initialize` as the first, network transports refuse it (G-030)."""
    keep_sessions: bool = False
    """Its sessions and turns go on when it leaves."""
    leave_turns: bool = False
    """Its turns in sessions that another process owns go on when it leaves."""
    start_ahead: bool = True
    """Get the agent's capabilities at `initialize`, if needed by starting it."""
    spare: bool = True
    """Use that agent for the first session: right for one editor, not for a thousand clients at a port."""
    restart_on_load: bool = True
    """Restart the agent of a session as soon as it is loaded, not only when it is needed."""
    beside: bool = False
    """The client and its terminals run on this machine: stdio."""
    local_process: bool = False
    """The client is another process of Dragoman: it may also close sessions that it is not attached to."""
    unattached: bool = False
    """It may use sessions that it is not attached to."""
    revoked: Callable[[], str | None] | None = None
    """Why its token is no longer valid; None while it is. Not needed by clients that are only disconnected then."""
    list_limit: int = LIST_PAGE
    """Sessions in one page of `session/list`."""
    identity: Identity = LOCAL
    """The identity of its token, which decides what it may do."""
    rate_limit: RateLimit | None = None
    """Counts its requests if its transport does not."""


class ClientConnection:
    """`Receiver` of a client's messages."""

    def __init__(self, gateway: Gateway, key: int, terms: Terms) -> None:
        self.gateway = gateway
        self.key = key
        self.terms = terms
        self.bound_agent = terms.agent
        self.may_control = terms.identity.may_control
        """False for observers: they change nothing, get no questions, and no agent is started or ended for them."""
        self.restarts_agents = terms.restart_on_load and self.may_control
        self._has_quota = bool(terms.identity.quota.sessions or terms.identity.quota.turns)
        batches = gateway.config.protocol.batches == "accept"
        share = gateway.request_share(terms.identity.name)
        self.peer = Peer("The client", self, accept_batches=batches, budget=share)
        self.peer.on_answer = gateway.witness.request
        self.capabilities = ClientCapabilities({})
        self.info: object = None
        self.attachments: dict[str, Attachment] = {}
        self.writable = True
        """The client reads what it is sent."""
        self.left = asyncio.Event()
        """Set when the client is gone and everything of it has been cleaned up."""
        self.on_left: Callable[[], None] | None = None
        self.handshake: Handshake = Handshake(self)
        self.login: Login = Login(self)
        self._backpressure = Backpressure(self)
        self._setups: set[asyncio.Task[None]] = set()
        self._malformed = 0

    @property
    def shows_terminals(self) -> bool:
        """Whether commands that an agent runs by itself are shown in this client's terminals."""
        can = self.capabilities
        return self.terms.beside and can.terminal and not can.draws_terminals and self.may_control

    @property
    def backlog(self) -> int:
        """Bytes that the client has not read yet; 0 before its link is open."""
        link = getattr(self.peer, "link", None)
        return link.backlog if link is not None else 0

    # -- Receiver

    def peer_request(self, request: Request) -> None:
        if log.isEnabledFor(logging.DEBUG):
            log.debug("request", extra={**self._about(request), "method": request.method})
        if self.terms.rate_limit is not None:
            self.terms.rate_limit.request(len(request.params))
        self.check(request.method)
        if request.method == "initialize":
            self.handshake.initialize(request)
            return
        if not self.handshake.done:
            raise invalid_request("The first request must be initialize", "not_initialized")
        handler = REQUESTS.get(request.method)
        if handler is not None:
            handler(self, request)
        else:
            self._unknown_request(request)

    def peer_notification(self, method: str, params: bytes) -> None:
        if not self.handshake.done:
            return
        if not self.may_control:
            log.info("notification of an observer ignored", extra={"client": self.key, "method": method})
            return
        if self.terms.rate_limit is not None and method != "session/cancel":
            self.terms.rate_limit.request(len(params))
        session_id = session_of(params)
        session = self.session(session_id) if session_id is not None else None
        if method in REQUESTS and method != "session/cancel":
            log.info("request without an id ignored", extra={"client": self.key, "method": method})
        elif method == "session/cancel":
            if session is not None:
                session.cancel()
        elif session is not None:
            session.notify_agent(method, params)
        elif session_id is None and self.bound_agent is not None:
            for agent in self.gateway.pool.agents_of(self):
                agent.peer.notify(method, one_session(params))

    def peer_malformed(self, frame: bytes, error: Malformed) -> bool:
        self._malformed += 1
        if self._malformed <= LOGGED_MALFORMED:
            log.info(
                "client sent something that is not a message: %s", error.message, extra={"client": self.key}
            )
        return True

    def peer_writable(self, writable: bool) -> None:
        """Apply back-pressure: a client that reads slowly pauses its agents, with a journal only briefly (G-086)."""
        self.writable = writable
        self._backpressure.writable_changed(writable)

    def peer_closed(self, reason: str | None) -> None:
        log.info("client left%s", f": {reason}" if reason else "", extra={"client": self.key})
        self.gateway.spawn(self._leave())

    # -- sessions

    def check(self, method: str) -> None:
        """Raise if this client may not call the method, by its token, its role or its quota."""
        reason = self.terms.revoked() if self.terms.revoked is not None else None
        if reason is not None:
            raise forbidden(reason)
        if not self.may_control:
            refused = self.terms.identity.method_refusal(method)
            if refused is not None:
                raise refused
        if self._has_quota:
            quotas.check(self, method)

    def session(self, session_id: str) -> Session | None:
        """A session that this client created, loaded or resumed; None for any other (G-046)."""
        attachment = self.attachments.get(session_id)
        if attachment is None and self.terms.unattached:
            return self.gateway.sessions.get(session_id)
        return attachment.session if attachment is not None else None

    def require_session(self, request: Request) -> Session:
        try:
            session_id = session_in(request.members)
        except Malformed:
            session_id = None
        if session_id is None:
            raise invalid_params("sessionId is required", "sessionId")
        session = self.session(session_id)
        if session is None:
            raise session_not_found(session_id)
        return session

    def agent_for(self, cwd: str, params: JsonObject) -> str:
        """The agent of a new session (G-036)."""
        if self.bound_agent is not None:
            return self.bound_agent
        asked = own_meta(params).get("agent")
        return self.gateway.agent_for(cwd, asked)

    def check_agent(self, agent: str, session_id: str) -> None:
        """Raise if this connection is bound to another agent than the session's."""
        if self.bound_agent is not None and agent != self.bound_agent:
            raise session_not_found(
                session_id, f"It belongs to the agent {agent}, this connection is to {self.bound_agent}"
            )

    def setup(self, request: Request, work: SetupWork) -> None:
        """Answer a request in a task; `$/cancel_request` or the client's end cancels it."""
        task = self.gateway.spawn(self._run(request, work))

        def done(task: asyncio.Task[None]) -> None:
            self._setups.discard(task)
            if task.cancelled():  # also before its first step, when its own code cannot answer
                request.fail(RpcError(-32800, "Request cancelled"))

        self._setups.add(task)
        task.add_done_callback(done)
        request.on_cancel = partial(_stop, task)

    async def _run(self, request: Request, work: SetupWork) -> None:
        TRACE.set(meta_of(request.params))
        LOG_CONTEXT.set(self._about(request))
        try:
            await work(self, request)
        except RpcError as error:
            request.fail(error)
        except Malformed as error:
            request.fail(error.as_error())
        except StoreError as error:
            request.fail(internal(str(error), error.code))
        except Exception:  # a bug of ours must not cost the client its answer
            log.exception("request failed", extra={"method": request.method})
            request.fail(internal("Internal error in the gateway; its log has the details"))

    def _about(self, request: Request) -> JsonObject:
        """Facts about a request for the log: client, request and session."""
        named = session_of(request.params)
        return {"client": self.key, "request": request.label, "session": named}

    # -- from an agent, about no session

    def agent_request(self, agent: AgentConnection, request: Request) -> None:
        params = request.params
        if request.method == ELICITATION:
            params = self._elicitation(agent, params)
        call = self.peer.request(request.method, params, request.answer)
        request.on_cancel = lambda: self.peer.cancel(call)

    def agent_notification(self, agent: AgentConnection, method: str, params: bytes) -> None:
        """Forward a notification; dropped for a client that does not read, since it is in no journal."""
        if self.backlog > limits.CLIENT_BACKLOG_BYTES:
            log.info(
                "notification for a client that does not read, dropped",
                extra={"client": self.key, "method": method},
            )
        else:
            self.peer.notify(method, params)

    def _elicitation(self, agent: AgentConnection, params: bytes) -> bytes:
        """Replace the agent's id of the request that an elicitation is about by the client's id (G-065)."""
        asked = decode_object(params)
        if not self.capabilities.elicitation(str(asked.get("mode"))):
            raise invalid_params(f"The client does not offer elicitation mode {asked.get('mode')!r}")
        shown = asked.get("elicitationId")
        if isinstance(shown, str):
            agent.elicitations[shown] = self
        call = asked.get("requestId")
        origin = agent.origins.get(call) if isinstance(call, int) else None
        if origin is None:
            return params
        return encode({**message.members(params), "requestId": Raw(origin)})

    # -- the rest

    def _unknown_request(self, request: Request) -> None:
        """Forward an unknown method if it can be routed: it may belong to a later protocol version (G-019)."""
        session_id = session_of(request.params)
        if session_id is not None:
            self.require_session(request).forwarding.to_agent(request)
        elif self.bound_agent is not None:
            self.setup(request, ClientConnection._forward_sessionless)
        else:
            raise method_not_found(request.method)

    async def _forward_sessionless(self, request: Request) -> None:
        agent = await self.gateway.pool.borrow(self, self.bound_agent or "")
        request.answer(await agent.call(request.method, one_session(request.params), request))

    async def _leave(self) -> None:
        """Clean up after a client that is gone."""
        try:
            await self._finish_setups()
            await self._let_go()
        finally:  # whatever fails above, `left` must be set
            await self.gateway.pool.client_gone(self)
            self.peer.link.close()
            self.gateway.client_left(self)
            self.left.set()
            if self.on_left is not None:
                self.on_left()

    async def _let_go(self) -> None:
        sessions = [attachment.session for attachment in self.attachments.values()]
        keep = self.terms.keep_sessions or not self.may_control
        if not keep:
            await self._cancel_turns(sessions)
            await self._send_answers([each for each in sessions if len(each.attachments) == 1])
        for session in sessions:
            session.detach(self)
        if not keep:
            await asyncio.gather(
                *(create.end_session(session) for session in sessions if not session.attachments)
            )

    async def _finish_setups(self) -> None:
        """Wait a bounded time for requests that came before the client closed its side, then cancel them."""
        if self._setups and not self.terms.keep_sessions and not self.gateway.closing:
            await asyncio.wait(list(self._setups), timeout=SETUP_TIMEOUT)
        for task in list(self._setups):
            task.cancel()

    async def _cancel_turns(self, sessions: list[Session]) -> None:
        """Cancel this client's turns and wait briefly for their end: stdout may still be read (G-113)."""
        turns = [each.turn for each in sessions if each.turn is not None and each.turn.client is self]
        for turn in turns:
            if self.terms.leave_turns and turn.session.follows:
                turn.settle(CANCELLED)  # only here; at the owner the turn goes on
            else:
                turn.session.cancel()
        if turns:
            await asyncio.wait(
                [asyncio.ensure_future(turn.done.wait()) for turn in turns], timeout=GOODBYE_TIMEOUT
            )

    async def _send_answers(self, sessions: list[Session]) -> None:
        """Send the last answers of sessions that end now, even if the store hangs or fails."""
        settled = await settle(sessions, GOODBYE_TIMEOUT)
        for session in sessions:
            # If another client attached meanwhile, the session and its journal go on.
            if session.journal is not None and len(session.attachments) == 1 and not session.attaching:
                session.journal.end(answered=session in settled)


Handler = Callable[[ClientConnection, Request], None]
SetupWork = Callable[[ClientConnection, Request], Awaitable[None]]


def _stop(task: asyncio.Task[None]) -> None:
    task.cancel()


def _in_setup(work: SetupWork) -> Handler:
    return lambda client, request: client.setup(request, work)


def _prompt(client: ClientConnection, request: Request) -> None:
    client.require_session(request).prompt(client, request)


def _cancel(client: ClientConnection, request: Request) -> None:
    """`session/cancel` is a notification; sent as a request it is carried out and answered too (G-015)."""
    session = client.session(session_of(request.params) or "")
    if session is not None:
        session.cancel()
    request.reply(message.EMPTY)


REQUESTS: dict[str, Handler] = {
    "authenticate": _in_setup(lambda client, request: client.login.authenticate(request)),
    "logout": _in_setup(lambda client, request: client.login.logout(request)),
    "session/new": _in_setup(create.new),
    "session/load": _in_setup(load.load),
    "session/resume": _in_setup(load.resume),
    "session/list": _in_setup(listing.list_sessions),
    "session/fork": _in_setup(create.fork),
    "session/close": _in_setup(create.close),
    "session/end": _in_setup(create.close),  # an older name for it (G-116)
    "session/delete": _in_setup(create.delete),
    "session/prompt": _prompt,
    "session/cancel": _cancel,
    "session/set_mode": settings.set_in_older_words,
    "session/set_model": settings.set_in_older_words,
    "session/set_config_option": settings.set_config_option,
}
