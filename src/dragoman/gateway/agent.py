"""One running agent: its sessions, and the routing of its messages."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman.config.model import AgentConfig
from dragoman.gateway.agent_link import AgentLink
from dragoman.gateway.bounded_dict import BoundedDict
from dragoman.gateway.delivery.early_messages import EarlyMessages
from dragoman.gateway.delivery.events import HISTORY, tag_of
from dragoman.gateway.json_types import decode_object
from dragoman.gateway.path_mapping import path_fields
from dragoman.gateway.path_mapping.mapped_peer import update_params
from dragoman.gateway.ports.agent import AgentSession
from dragoman.gateway.ports.sandbox import Box
from dragoman.gateway.refusals import log_refusal
from dragoman.gateway.rewriting import reserved
from dragoman.gateway.rewriting.rewrite import one_session, session_of, without_session
from dragoman.gateway.rewriting.updates import UPDATE, UpdateHead, holds_update, read_head
from dragoman.gateway.runtime import Runtime
from dragoman.gateway.session.policy.hook_question import HookQuestion
from dragoman.gateway.session.questions.question import CANCEL_ANSWER, ELICITATION
from dragoman.log import redact_prompt
from dragoman.rpc.request import OnReply, Reply, Request
from dragoman.wire import limits, message
from dragoman.wire.errors import (
    Malformed,
    RpcError,
    internal,
    invalid_params,
    method_not_found,
)

if TYPE_CHECKING:
    from dragoman.gateway.access.client import Client

log = logging.getLogger(__name__)

OF_A_SESSION = ("fs/", "terminal/", "session/")
"""Prefixes of methods that an agent may call only for one of its sessions."""
MAX_LOGGED_ID = 200
"""Characters of an agent's session id in logs and errors."""


class AgentConnection(AgentLink):
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
        super().__init__(name, box, cwd)
        self._runtime = runtime
        self.on_end: Callable[[AgentConnection], None] | None = None
        self.config = config
        self.ours = self.is_owner or config.kind in reserved.OURS
        """The agent may use reserved members and methods (`reserved`)."""
        self.client = client
        """The client it was started for: unknown requests without a session go there."""
        self.shared = shared
        self.folder: str | None = None
        """The working folder of its process; None if it does not matter for this agent."""
        self.sessions: dict[str, AgentSession] = {}
        self._creating = 0  # session/new and session/fork in flight: their ids are not known yet
        self._early = EarlyMessages()
        self._stray: str | None = None
        """The last unknown session whose updates were dropped: only the first of its updates is logged."""
        self._garbage = 0
        self.elicitations: BoundedDict[Client] = BoundedDict(limits.ELICITATIONS)
        """The client that got each elicitation; only that client gets its completion (G-066)."""

    def expect_session(self) -> None:
        """Hold updates for unknown session ids from now on: a session is being created (G-044)."""
        self._creating += 1

    def session_created(self, session: AgentSession | None) -> None:
        """Stop holding updates for unknown session ids; `session` is None if its creation failed."""
        self._creating -= 1
        if not self._creating:
            known = session.agent_session_id if session is not None else None
            for line in self._early.forget(except_for=known):
                if read_head(line) is None:  # a request, which must be answered
                    self.peer.receive(line)

    def release_early(self, session: AgentSession, *, replayed: bool = False) -> None:
        """Handle the messages that came before the session was known; called once its creation was answered.

        `replayed`: what they tell of the conversation is a replay that the journal has already (opencode 1.18 forks so).
        """
        for line in self._early.take(session.agent_session_id):
            head = read_head(line) if replayed else None
            if head is not None and tag_of(head.kind) == HISTORY:
                continue
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
                    self._refuse(request, asid)
                    return
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

    def _refuse(self, request: Request, asid: str) -> None:
        """Answer a request of an unknown session; a question is cancelled: its session was just closed (G-091)."""
        if request.method not in CANCEL_ANSWER:
            raise internal(f"Unknown session: {asid[:MAX_LOGGED_ID]}")
        if self.is_owner:
            request.abandon()  # for clients of the owner it stays open
        else:
            request.reply(CANCEL_ANSWER[request.method])

    def _prompted(self, request: Request) -> AgentSession | None:
        """The session of the prompt that an elicitation is about, if the prompt's client reads the journal."""
        if request.method != ELICITATION:
            return None
        call = decode_object(request.params).get("requestId")
        return next((session for session in self.sessions.values() if session.prompted(call)), None)

    def hook_called(self, session_id: str, params: bytes, answered: OnReply) -> Callable[[], None]:
        """Decide about a tool call that a hook tells before it runs; implements `HookHandler`."""
        question = HookQuestion(self.peer, params, answered)
        session = self.sessions.get(session_id)
        if (
            session is None and len(self.sessions) == 1
        ):  # a subagent's, or one that the adapter calls otherwise
            (session,) = self.sessions.values()
        if session is None:
            question.fail(
                internal(f"There is no session {session_id[:MAX_LOGGED_ID]} whose rules could be asked")
            )
        else:
            self._translate(question)
            try:
                session.agent_request(question)
            except (RpcError, Malformed) as error:
                question.fail(error if isinstance(error, RpcError) else error.as_error())
        return question.cancel

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
            self.gone = internal(
                f"The agent {self.name} wrote {self._garbage} lines that are not ACP messages and was ended",
                "agent_exited",
                agent=self.name,
                stderrTail=self.outside(self.handle.end().stderr_tail) if self.handle else "",
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

    def refused(self, method: str, params: bytes, reply: Reply) -> None:
        asked = self.sessions.get(session_of(params) or "")
        log_refusal(self.name, asked.id if asked is not None else None, method, reply)

    # -- early messages

    def _hold_early(self, asid: str, line: bytes) -> None:
        if self._creating and self._early.hold(asid, line):
            return
        self._early.dropped += self._creating > 0
        if asid[:MAX_LOGGED_ID] != self._stray:
            self._stray = asid[:MAX_LOGGED_ID]
            why = "more than is held before session/new is answered" if self._creating else "unknown session"
            log.info("updates dropped: %s", why, extra={"agent": self.name, "agent_session": self._stray})

    def _translate(self, request: Request) -> None:
        if self.paths is not None:
            request.params = path_fields.translate_params(request.method, request.params, self.paths.to_host)
