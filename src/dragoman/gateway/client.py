"""One client connection: its methods, its sessions, its end. Everything that the client sends arrives here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from dragoman.gateway.access import quotas
from dragoman.gateway.access.client import Client, Terms
from dragoman.gateway.access.handshake import Handshake
from dragoman.gateway.access.login import Login
from dragoman.gateway.agent import AgentConnection
from dragoman.gateway.json_types import JsonObject, own_meta
from dragoman.gateway.ports.store import StoreError
from dragoman.gateway.ports.witness import TRACE
from dragoman.gateway.rewriting.rewrite import meta_of, one_session, session_in, session_of
from dragoman.gateway.session.prompts.queue import CANCELLED
from dragoman.gateway.session.session import Session
from dragoman.gateway.session.stream import settle
from dragoman.log import LOG_CONTEXT
from dragoman.rpc.peer import Peer
from dragoman.rpc.request import Request
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
    from dragoman.gateway.registry import Registry

log = logging.getLogger(__name__)

SETUP_TIMEOUT = 5.0
"""Seconds that a request which waits for an agent has after the client closed its side."""
LOGGED_MALFORMED = 20
"""Malformed messages logged per client: each is answered, but they must not fill the log."""
GOODBYE_TIMEOUT = 2.0
"""Seconds that turns have to end after their client left, before their agents are ended (G-113)."""


class ClientConnection(Client):
    """`Receiver` of a client's messages."""

    def __init__(
        self, gateway: Registry, key: int, terms: Terms, handlers: Mapping[str, Callable[..., None]]
    ) -> None:
        """`handlers`: what handles each method (`requests`)."""
        batches = gateway.config.protocol.batches == "accept"
        share = gateway.request_share(terms.identity.name)
        super().__init__(key, terms, Peer("The client", self, accept_batches=batches, budget=share))
        self.gateway = gateway
        self._handlers = handlers
        self._has_quota = bool(terms.identity.quota.sessions or terms.identity.quota.turns)
        self.peer.on_answer = gateway.witness.request
        self.left = asyncio.Event()
        """Set when the client is gone and everything of it has been cleaned up."""
        self.on_left: Callable[[], None] | None = None
        self.handshake: Handshake = Handshake(self)
        self.login: Login = Login(self)
        self._setups: set[asyncio.Task[None]] = set()
        self._malformed = 0

    # -- Receiver

    def peer_request(self, request: Request) -> None:
        if log.isEnabledFor(logging.DEBUG):
            log.debug("request", extra={**self._log_facts(request), "method": request.method})
        if self.terms.rate_limit is not None:
            self.terms.rate_limit.request(len(request.params))
        self.check(request.method)
        if request.method == "initialize":
            self.handshake.initialize(request)
            return
        if not self.handshake.done:
            raise invalid_request("The first request must be initialize", "not_initialized")
        handler = self._handlers.get(request.method)
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
        if method in self._handlers and method != "session/cancel":
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
        if session_id in self.attachments or self.terms.unattached:
            return self.gateway.sessions.get(session_id)
        return None

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

    async def agent_started(self, agent: AgentConnection) -> None:
        await self.login.repeat(agent)

    def setup(self, request: Request, work: Callable[[ClientConnection, Request], Awaitable[None]]) -> None:
        """Answer a request in a task; `$/cancel_request` or the client's end cancels it."""
        task = self.gateway.spawn(self._run(request, work))

        def done(task: asyncio.Task[None]) -> None:
            self._setups.discard(task)
            if task.cancelled():  # also before its first step, when its own code cannot answer
                request.fail(RpcError(-32800, "Request cancelled"))

        self._setups.add(task)
        task.add_done_callback(done)
        request.on_cancel = task.cancel

    async def _run(
        self, request: Request, work: Callable[[ClientConnection, Request], Awaitable[None]]
    ) -> None:
        TRACE.set(meta_of(request.params))
        LOG_CONTEXT.set(self._log_facts(request))
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

    def _log_facts(self, request: Request) -> JsonObject:
        """Facts about a request for the log: client, request and session."""
        named = session_of(request.params)
        return {"client": self.key, "request": request.label, "session": named}

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
        sessions = [session for each in self.attachments if (session := self.session(each)) is not None]
        keep = self.terms.keep_sessions or not self.may_control
        if not keep:
            for session in sessions:
                session.prompts.withdraw_of(self)
            await self._cancel_turns(sessions)
            await self._send_answers([each for each in sessions if len(each.attachments) == 1])
        for session in sessions:
            session.detach(self)
        if not keep:
            await asyncio.gather(*map(self._end_unless_used, sessions))

    async def _end_unless_used(self, session: Session) -> None:
        """End a session that no client is attached to, or about to be."""
        if not session.attachments and not session.attaching:
            await self.gateway.end_session(session)

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
            if self.leaves_turns and turn.session.follows:
                turn.settle(CANCELLED)  # only here; at the owner the turn goes on
            else:
                turn.withdraw()
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
