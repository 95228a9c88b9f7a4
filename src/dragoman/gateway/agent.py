"""One running agent: its handshake, its sessions, and the routing of its messages."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from dragoman import __version__
from dragoman.config.model import AgentConfig
from dragoman.gateway.access.capabilities import PROTOCOL_VERSION, AgentCapabilities
from dragoman.gateway.bounded_dict import BoundedDict
from dragoman.gateway.delivery.early_messages import EarlyMessages
from dragoman.gateway.json_types import JsonObject, as_object, decode_object, encode
from dragoman.gateway.path_mapping import path_fields
from dragoman.gateway.path_mapping.mapped_peer import MappedPeer, MappedRewriter, update_params
from dragoman.gateway.ports.agent import AgentHandle, AgentSession, AgentUnavailable
from dragoman.gateway.ports.sandbox import Box
from dragoman.gateway.refusals import log_refusal
from dragoman.gateway.rewriting import reserved
from dragoman.gateway.rewriting.rewrite import one_session, session_of, without_session
from dragoman.gateway.rewriting.updates import UPDATE, UpdateHead, UpdateRewriter, holds_update, read_head
from dragoman.gateway.runtime import Runtime
from dragoman.gateway.session.questions.question import ELICITATION
from dragoman.log import redact_prompt
from dragoman.rpc.link import LinkHandler
from dragoman.rpc.peer import Peer
from dragoman.rpc.request import Reply, Request
from dragoman.wire import limits, message
from dragoman.wire.errors import (
    INTERNAL_ERROR,
    Malformed,
    RpcError,
    internal,
    invalid_params,
    method_not_found,
)

if TYPE_CHECKING:
    from dragoman.gateway.access.client import Client

log = logging.getLogger(__name__)

Launch = Callable[[LinkHandler], Awaitable[AgentHandle]]

OF_A_SESSION = ("fs/", "terminal/", "session/")
"""Prefixes of methods that an agent may call only for one of its sessions."""
MAX_TOLD = 200
"""Characters of an agent's session id in logs and errors."""


class SilentAgent(RpcError):
    """The agent sent nothing for too long while a request was open."""


class AgentConnection:
    """An agent process and its sessions; `Receiver` of its messages."""

    is_owner = False
    """The peer is no agent, but the process of Dragoman that owns the session."""

    def __init__(
        self,
        runtime: Runtime,
        name: str,
        config: AgentConfig,
        client: Client,
        *,
        shared: bool,
        box: Box | None = None,
        cwd: str | None = None,
    ) -> None:
        """`cwd` is the folder of its first session, as the client spells it."""
        self._runtime = runtime
        self.on_end: Callable[[AgentConnection], None] | None = None
        self.name = name
        self.config = config
        self.ours = self.is_owner or config.kind in reserved.OURS
        """The agent may use reserved members and methods (`reserved`)."""
        self.client = client
        """The client it was started for: unknown requests without a session go there."""
        self.shared = shared
        self.box = box
        """The sandbox that the agent runs in."""
        self.folder: str | None = None
        """The working folder of its process; None if it does not matter for this agent."""
        self.paths = box.paths_for(cwd) if box is not None else None
        self.peer = (
            Peer(f"The agent {name}", self, strict=False, intercept=self._intercept)
            if self.paths is None
            else MappedPeer(f"The agent {name}", self, self.paths, self._intercept)
        )
        self.capabilities = AgentCapabilities({})
        self.sessions: dict[str, AgentSession] = {}
        self.handle: AgentHandle | None = None
        self.stopping = False
        self._creating = 0  # session/new and session/fork in flight: their ids are not known yet
        self._early = EarlyMessages()
        self._stray: str | None = None
        """The last unknown session whose updates were dropped: only the first of its updates is logged."""
        self._garbage = 0
        self._holds: set[object] = set()
        self.elicitations: BoundedDict[Client] = BoundedDict(limits.ELICITATIONS)
        """The client that got each elicitation; only that client gets its completion (G-066)."""
        self.origins: dict[object, bytes] = {}
        """The client's id of a forwarded request by our id, for elicitations about a request."""
        self._gone: RpcError | None = None

    # -- life

    async def start(
        self, launch: Launch, capabilities: JsonObject, client_info: object, timeout: float
    ) -> JsonObject:
        """Launch and initialize; returns the agent's own `initialize` result."""
        try:
            self.handle = await launch(self.peer)
        except AgentUnavailable as error:
            self._gone = internal(str(error), "agent_unavailable", agent=self.name)
            raise self._gone from error
        if self.peer.closed:
            self._gone = None  # made before there was a handle that knows how the agent ended
            failure = self.gone_error()
            raise internal(f"It did not start: {failure.message}", "agent_unavailable", agent=self.name)
        log.info("agent started", extra={"agent": self.name, "pid": self.handle.pid})
        params: JsonObject = {"protocolVersion": PROTOCOL_VERSION, "clientCapabilities": capabilities}
        params["clientInfo"] = client_info or {
            "name": "dragoman",
            "title": "Dragoman",
            "version": __version__,
        }
        try:
            reply = await asyncio.wait_for(self.call("initialize", encode(params)), timeout)
        except TimeoutError as error:
            raise internal(
                f"The agent {self.name} did not answer initialize within {timeout:g} s{self._stderr()}",
                "agent_unavailable",
                agent=self.name,
            ) from error
        if not reply.ok and self.handle.end().reason is not None:
            raise internal(self.gone_error().message, "agent_unavailable", agent=self.name)
        if not reply.ok:
            refusal = as_object(decode_object(reply.error))
            why = str(refusal.get("message"))
            told = why if "Its last lines on stderr" in why else f"{why}{self._stderr()}"
            raise internal(
                f"The agent {self.name} refused to start: {told}",
                "agent_unavailable",
                agent=self.name,
                error=refusal,
            )
        try:
            result = decode_object(reply.result)
        except Malformed as error:
            raise internal(
                f"The agent {self.name} answered initialize with something that is not an object",
                "agent_unavailable",
                agent=self.name,
            ) from error
        self.capabilities = AgentCapabilities(result)
        return result

    async def stop(self) -> None:
        self.stopping = True
        if self.handle is not None:
            await self.handle.stop()

    @property
    def alive(self) -> bool:
        return self.handle is not None and not self.peer.closed

    def gone_error(self) -> RpcError:
        """Why this agent does not answer any more (G-110)."""
        if self._gone is None:
            end = self.handle.end() if self.handle is not None else None
            how = end.describe() if end is not None else "is not running"
            if self.box is not None and end is not None:
                how = f"in the sandbox {self.box.name} {how}{self.box.explain(end)}"
            self._gone = internal(
                f"The agent {self.name} {how}{self._stderr()}",
                "agent_exited",
                agent=self.name,
                exitCode=end.exit_code if end else None,
                signal=end.signal if end else None,
                stderrTail=self._outside(end.stderr_tail) if end else "",
            )
        return self._gone

    def rewriter(
        self, agent_session_id: str, session_id: str, see: Callable[[JsonObject], bool]
    ) -> UpdateRewriter:
        """The rewriter for this agent's updates of a session."""
        if self.paths is None:
            return UpdateRewriter(agent_session_id, session_id, see)
        return MappedRewriter(agent_session_id, session_id, see, self.paths)

    # -- asking

    async def call(
        self,
        method: str,
        params: bytes,
        origin: Request | None = None,
        heard: Callable[[Reply], None] | None = None,
        patience: float | None = None,
    ) -> Reply:
        """Send a request and wait for its answer, for the few requests that set something up.

        `origin` is the client's request behind it; `heard` is called with the answer before any later message of the
        agent is handled. Raises `SilentAgent` if the agent sends nothing for `patience` seconds.
        """
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        def answered(reply: Reply) -> None:
            if future.done():
                return
            try:
                if heard is not None:
                    heard(reply)
            except (RpcError, Malformed) as error:  # raised in the waiting caller
                future.set_exception(error)
            else:
                future.set_result(reply)

        call = self.peer.request(method, params, answered)
        if origin is not None:
            self.origins[call] = origin.id
        try:
            reply = await self._within(future, method, patience)
        except (asyncio.CancelledError, SilentAgent):
            self.peer.cancel(call)
            self.peer.forget(call)
            raise
        finally:
            self.origins.pop(call, None)
        if not reply.ok and self.alive:
            asked = self.sessions.get(session_of(params) or "")
            log_refusal(self.name, asked.id if asked is not None else None, method, reply)
        return reply

    async def _within(self, answer: asyncio.Future[Reply], method: str, patience: float | None) -> Reply:
        """Wait for the answer unless the agent is silent; it may be while its own request is open, or while paused."""
        while patience is not None:
            reads, excused = self.peer.reads, self._may_be_silent
            await asyncio.wait((answer,), timeout=patience)
            if answer.done():
                break
            if reads == self.peer.reads and not excused and not self._may_be_silent:
                raise SilentAgent(
                    INTERNAL_ERROR,
                    f"The agent {self.name} did not answer {method}: it has said nothing for {patience:g} s "
                    f"(limits.session_timeout). Try again, or see with `dragoman agents check {self.name}` whether it "
                    f"works{self._stderr()}",
                    {"reason": "agent_unavailable", "agent": self.name},
                )
        return await answer

    @property
    def _may_be_silent(self) -> bool:
        return self.peer.waits_for_us or bool(self._holds)

    async def ask(
        self,
        method: str,
        params: bytes,
        timeout: float,
        heard: Callable[[Reply], None] | None = None,
    ) -> Reply:
        """`call` that waits no longer than `timeout`; returns an error reply if there is no answer."""
        try:
            return await asyncio.wait_for(self.call(method, params, heard=heard), timeout)
        except TimeoutError:
            return Reply.failed(
                internal(f"The agent {self.name} did not answer {method} within {timeout:g} s")
            )

    def expect_session(self) -> None:
        """Hold updates for unknown session ids from now on: a session is being created (G-044)."""
        self._creating += 1

    def session_created(self, session: AgentSession | None) -> None:
        """End what `expect_session` began; None if no session was created."""
        self._creating -= 1
        if not self._creating:
            self._early.forget(except_for=session.agent_session_id if session is not None else None)

    def release_early(self, session: AgentSession) -> None:
        """Handle the messages that came before the session was known; called once its creation was answered."""
        for line in self._early.take(session.agent_session_id):
            if not self._intercept(line):
                self.peer.receive(line)
        if self._early.dropped:
            session.notice(
                f"The agent said more about new sessions than can be kept before they are there: "
                f"{self._early.dropped} of its updates are lost."
            )
            self._early.dropped = 0

    @property
    def expecting(self) -> bool:
        """Whether a session is being created at this agent."""
        return self._creating > 0

    def overloaded(self) -> bool:
        """Whether too much waits to be sent, because the agent does not read its stdin."""
        return self.handle is not None and self.handle.backlog > limits.AGENT_BACKLOG_BYTES

    # -- back-pressure

    def hold(self, holder: object) -> None:
        """Stop reading from this agent until `holder` releases it."""
        if not self._holds and self.handle is not None:
            self.handle.pause()
        self._holds.add(holder)

    def release(self, holder: object) -> None:
        self._holds.discard(holder)
        if not self._holds and self.handle is not None:
            self.handle.resume()

    # -- Receiver

    def _intercept(self, line: bytes) -> bool:
        """The message path: hand an update directly to its session; False for other messages."""
        head = read_head(line)
        if head is None:
            return not self.ours and self._receive_cleaned(line)
        if head.marked and not self.ours:
            line = reserved.cleaned(line)
            head = read_head(line) or head  # the size has changed
        session = self.sessions.get(head.session_id)
        if session is not None and not self.is_owner:
            session.updates.receive(head.kind, line, head.size)
        else:
            self._update(head, line)
        return True

    def _receive_cleaned(self, line: bytes) -> bool:
        """Receive a message without its reserved members; False if it has none."""
        cleaned = reserved.cleaned(line)
        if cleaned is line:
            return False
        self.peer.receive(cleaned)
        return True

    def _update(self, head: UpdateHead, line: bytes) -> None:
        session = self.sessions.get(head.session_id)
        if session is not None:
            session.updates.receive(head.kind, line, head.size)
        else:
            self._hold_early(head.session_id, line)

    def peer_request(self, request: Request) -> None:
        if reserved.is_reserved(request.method):
            raise method_not_found(request.method)
        request.params = one_session(request.params)
        asid = session_of(request.params)
        if asid is not None:
            session = self.sessions.get(asid)
            if session is None:
                if not self._creating:
                    raise internal(f"Unknown session: {asid[:MAX_TOLD]}")
                # Held like an early update: the client must know the session before it is asked about it (G-082).
                line = message.request(request.id, request.method, request.params)
                if not self._early.hold(asid, line):
                    raise internal("Too much is said before session/new was answered", "too_many_requests")
                request.abandon()
                return
            self._translate(request)
            session.agent_request(request)
        elif request.method.startswith(OF_A_SESSION):
            # Without a session it would reach the client's files and commands past the session's sandbox and policy.
            raise invalid_params("sessionId is required: the id of the session that asks", "sessionId")
        elif (asked := self._prompted(request)) is not None:
            self._translate(request)
            asked.agent_request(request)
        elif not self.shared:
            self._translate(request)
            self.client.agent_request(self, request)
        else:
            raise method_not_found(request.method)

    def _prompted(self, request: Request) -> AgentSession | None:
        """The session of the prompt that an elicitation is about, if the prompt's client reads the journal."""
        if request.method != ELICITATION:
            return None
        call = decode_object(request.params).get("requestId")
        return next((session for session in self.sessions.values() if session.prompted(call)), None)

    def peer_notification(self, method: str, params: bytes) -> None:
        if reserved.is_reserved(method):
            log.info(
                "notification that only Dragoman sends, dropped", extra={"agent": self.name, "method": method}
            )
            return
        params = one_session(params)
        if method == "elicitation/complete":
            client = self.elicitations.pop(str(decode_object(params).get("elicitationId")), None)
            if client is not None:
                client.peer.notify(method, without_session(params))
            return
        asid = session_of(params)
        session = self.sessions.get(asid) if asid is not None else None
        if method == UPDATE and (asid is None or not holds_update(params)):
            log.info("an update of no session, or without an update, dropped", extra={"agent": self.name})
        elif session is not None:
            if method == UPDATE and self.paths is not None:
                params = update_params(params, self.paths)
            session.agent_notification(method, params)
        elif asid is None and not self.shared:
            self.client.agent_notification(self, method, params)
        elif method != UPDATE:
            log.info(
                "notification for an unknown session dropped", extra={"agent": self.name, "method": method}
            )

    def peer_malformed(self, frame: bytes, error: Malformed) -> bool:
        self._garbage += 1
        log.warning(
            "line on the agent's stdout is not a message, skipped: %s",
            error.message,
            extra={"agent": self.name, "count": self._garbage, "line": redact_prompt(frame[:200])},
        )
        if self._garbage == limits.GARBAGE_LINES:
            log.error("agent writes garbage, ending it", extra={"agent": self.name})
            self._gone = internal(
                f"The agent {self.name} wrote {self._garbage} lines that are not ACP messages and was ended",
                "agent_exited",
                agent=self.name,
                stderrTail=self._outside(self.handle.end().stderr_tail) if self.handle else "",
            )
            if self.handle is not None:
                self.handle.close()
                self._runtime.spawn(self.stop())
                self.peer.link_closed("garbage")
        return error.id != b"null"  # a request that cannot be read must not leave the agent waiting (G-143)

    def peer_writable(self, writable: bool) -> None:
        """Do nothing: `overloaded` handles an agent that reads slowly, so that other sessions go on (G-084)."""

    def peer_closed(self, reason: str | None) -> RpcError:
        error = self.gone_error()
        level = logging.INFO if self.stopping else logging.WARNING
        log.log(level, "agent ended: %s", error.message.partition("\n")[0], extra={"agent": self.name})
        if not self.stopping:
            self._runtime.witness.crash(self.name)
        sessions, self.sessions = list(self.sessions.values()), {}
        for session in sessions:
            session.agent_gone(error, expected=self.stopping)
        if self.on_end is not None:
            self.on_end(self)
        return error

    # -- early messages

    def _hold_early(self, asid: str, line: bytes) -> None:
        if self._creating and self._early.hold(asid, line):
            return
        self._early.dropped += self._creating > 0
        if asid[:MAX_TOLD] != self._stray:
            self._stray = asid[:MAX_TOLD]
            why = "more than is held before session/new is answered" if self._creating else "unknown session"
            log.info("updates dropped: %s", why, extra={"agent": self.name, "agent_session": self._stray})

    def _translate(self, request: Request) -> None:
        if self.paths is not None:
            request.params = path_fields.asked(request.method, request.params, self.paths.to_host)

    def _stderr(self) -> str:
        tail = self.handle.end().stderr_tail.strip() if self.handle is not None else ""
        return f". Its last lines on stderr:\n{self._outside(tail)}" if tail else ""

    def _outside(self, text: str) -> str:
        """A text from the agent for the user, with host paths."""
        return text if self.paths is None else self.paths.to_host.text(text)
