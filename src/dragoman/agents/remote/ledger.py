"""Tracks what is open between the gateway and a server, so that a new connection continues where a lost one ended.

No IO: lines go in at one side and come out at the other, and `lost` and `returned` report the state of the connection
between. If the server is a Dragoman, nothing is lost and nothing comes twice:

    updates      carry their number in the server's journal (`_meta.dragoman.seq`), which is removed here; the new
                 connection asks for those after the last one
    a prompt     sent before the loss is answered by the update that reports the end of the turn; one that never
                 arrived is sent again, which is known once all missed updates have come (`caughtUp`)
    a question   that was open is asked again by the server: it is the same question, so clients keep their dialogue,
                 and an answer given meanwhile is sent then
    the rest     is sent again if repeating it is harmless, else it fails
"""

from __future__ import annotations

from collections import deque
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Raw

from dragoman.agents.remote.lines import (
    dragoman_facts,
    end_of_turn,
    lenient_value,
    meta_of,
    own_position,
    setup_fields,
    text_of,
    wants_seq,
    with_dragoman,
    with_id,
    with_seq_wanted,
    without_seq,
)
from dragoman.wire import message
from dragoman.wire.errors import Malformed, internal
from dragoman.wire.message import ABSENT, lenient_members

SETUP = frozenset(
    {"initialize", "authenticate", "session/new", "session/load", "session/resume", "session/fork"}
)
"""Without an answer to these the state is unknown: a connection lost while one is open is not restored."""

REPEATABLE = frozenset(
    {
        "session/list",
        "session/close",
        "session/delete",
        "session/set_mode",
        "session/set_model",
        "session/set_config_option",
    }
)
"""Idempotent requests."""

RECENT_ANSWERS = 64
"""Answers that may have been in transit when a connection was lost."""

RUNNING = frozenset({"working", "silent", "waiting_for_permission"})


@dataclass(slots=True)
class OpenRequest:
    """A request of the gateway that is not answered yet."""

    method: str
    session_id: str | None
    line: bytes
    connection: int
    """Number of the connection on which the request was last sent."""
    seen: bool = False
    """Whether the server certainly has this prompt."""
    cancelled: bool = False
    continues: bool = False
    """Whether this resume asks for the events after one that the gateway named itself."""
    echoes: list[Any] = field(default_factory=list)
    """Blocks of a prompt that the server will send back to us after a reconnect, as to any other client."""


@dataclass(slots=True)
class Question:
    """A request of the server that is not answered yet."""

    method: str
    params: bytes
    session_id: str | None
    remote: bytes | None
    """The server's id of the request; None once its connection was lost."""
    answer: bytes | None = None
    """The answer, given but not known to have arrived."""


@dataclass(slots=True)
class KnownSession:
    """A session in use."""

    setup: dict[str, Raw]
    seq: int = 0
    returning: bool = False
    """Whether missed updates are still to come."""
    prompt: bytes | None = None
    """The id of the prompt in flight."""


class _Update(msgspec.Struct, gc=False):
    sessionUpdate: str = ""  # noqa: N815  the wire's spelling
    content: Raw = ABSENT
    meta: Raw = msgspec.field(name="_meta", default=ABSENT)


class _Params(msgspec.Struct, gc=False):
    sessionId: str  # noqa: N815
    update: _Update
    meta: Raw = msgspec.field(name="_meta", default=ABSENT)


class _Head(msgspec.Struct, gc=False):
    params: _Params
    method: str = ""
    id: Raw = ABSENT


_update = msgspec.json.Decoder(_Head)


class Ledger:
    def __init__(self, positions: MutableMapping[str, int]) -> None:
        """`positions` outlives the connection: the number of the last update received in each session."""
        self._positions = positions
        self._connection = 1
        self._open_requests: dict[bytes, OpenRequest] = {}
        self._questions: dict[bytes, Question] = {}
        self._answers: deque[Question] = deque(maxlen=RECENT_ANSWERS)
        self._sessions: dict[str, KnownSession] = {}
        self._renamed = 0
        self.hello = b""
        """The line of `initialize` as sent."""
        self._shows_seq = False
        """Whether the gateway itself asked for the numbers of updates."""
        self.is_dragoman = False
        self.to_gateway: list[bytes] = []
        self.to_server: list[bytes] = []

    # -- from the gateway

    def outgoing(self, line: bytes) -> None:
        try:
            envelope = message.decode(line)
        except Malformed:
            self.to_server.append(line)  # the server reports the error
            return
        if not envelope.method:
            self._answered(bytes(envelope.id), line)
            return
        params = message.members(envelope.params) if envelope.params is not ABSENT else {}
        session_id = text_of(params.get("sessionId"))
        if envelope.id is not ABSENT:
            line = self._ask(bytes(envelope.id), envelope.method, session_id, line, params)
        elif envelope.method == "session/cancel" and session_id in self._sessions:
            prompt = self._prompt(self._sessions[session_id])
            if prompt is not None:
                prompt.cancelled = True
        self.to_server.append(line)

    def _ask(
        self, id: bytes, method: str, session_id: str | None, line: bytes, params: dict[str, Raw]
    ) -> bytes:
        if method == "initialize":
            self._shows_seq = wants_seq(params)
            line = self.hello = line if self._shows_seq else with_seq_wanted(line, params)
        request = self._open_requests[id] = OpenRequest(method, session_id, line, self._connection)
        if method in ("session/load", "session/resume") and session_id is not None:
            former = self._sessions.get(session_id)
            known = self._sessions[session_id] = KnownSession(setup_fields(params))
            known.prompt = former.prompt if former is not None else None
            after = own_position(params)
            if method == "session/resume" and after is not None:
                known.seq, request.continues = after, True
            elif method == "session/resume" and self.is_dragoman and session_id in self._positions:
                known.seq = self._positions[session_id]
                known.returning = True
                line = with_dragoman(line, params, afterSeq=known.seq)
        elif method == "session/prompt" and session_id in self._sessions:
            self._sessions[session_id].prompt = id
            blocks = params.get("prompt")
            echoes = lenient_value(blocks) if blocks is not None else []
            request.echoes = echoes if isinstance(echoes, list) else []
        return line

    def _answered(self, local: bytes, line: bytes) -> None:
        question = self._questions.get(local)
        if question is None:
            return  # withdrawn meanwhile
        question.answer = line
        if question.remote is None:
            return
        del self._questions[local]
        self._answers.append(question)
        self.to_server.append(with_id(line, question.remote) if question.remote != local else line)

    # -- from the server

    def incoming(self, line: bytes) -> None:
        try:
            head = _update.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._receive_other(line)
            return
        if head.method == "session/update" and head.id is ABSENT:
            self._receive_update(head.params, line)
        else:
            self._receive_other(line)

    def _receive_update(self, params: _Params, line: bytes) -> None:
        known = self._sessions.get(params.sessionId)
        if params.meta is not ABSENT:
            seq, plain = without_seq(line, params.meta)
            line = line if self._shows_seq else plain
            if seq is not None and known is not None:
                if seq <= known.seq:
                    return  # a duplicate
                known.seq = seq
        if known is None:
            self.to_gateway.append(line)
            return
        update = params.update
        if update.sessionUpdate == "session_info_update" and self._note_state(
            params.sessionId, known, update.meta
        ):
            return
        prompt = self._prompt(known)
        if prompt is not None:
            if prompt.connection == self._connection:
                prompt.seen = not known.returning
            elif update.sessionUpdate == "user_message_chunk" and self._is_echo(prompt, update.content):
                return
        self.to_gateway.append(line)

    def _note_state(self, session_id: str, known: KnownSession, meta: Raw) -> bool:
        """Handle a state update of a Dragoman server; True if the gateway must not see it."""
        facts = dragoman_facts(lenient_value(meta)) if meta is not ABSENT else {}
        if "caughtUp" in facts and known.returning:
            self._caught_up(session_id, known, str(facts.get("state")))
            return True
        ended = facts.keys() & {"stopReason", "error"} or facts.get("state") == "interrupted"
        prompt = self._prompt(known)
        if not ended or prompt is None or prompt.connection == self._connection:
            return bool(ended) and known.returning
        if prompt.seen and known.prompt is not None:
            self.to_gateway.append(end_of_turn(known.prompt, facts))
            del self._open_requests[known.prompt]
            known.prompt = None
        return True  # else it is about the turn before, whose answer arrived

    def _is_echo(self, prompt: OpenRequest, content: Raw) -> bool:
        if not prompt.echoes or content is ABSENT or lenient_value(content) != prompt.echoes[0]:
            return False
        prompt.echoes.pop(0)
        prompt.seen = True
        return True

    def _caught_up(self, session_id: str, known: KnownSession, state: str) -> None:
        """Handle the end of missed updates: a prompt still open never arrived, a question still open is obsolete."""
        known.returning = False
        for local, question in list(self._questions.items()):
            if question.session_id == session_id and question.remote is None:
                del self._questions[local]
                self.to_gateway.append(message.notification("$/cancel_request", b'{"requestId":%b}' % local))
        self._answers.clear()
        prompt = self._prompt(known)
        if prompt is None or prompt.connection == self._connection:
            return
        if state not in RUNNING:
            prompt.connection = self._connection
            prompt.seen = False
            self.to_server.append(prompt.line)
        if prompt.cancelled:
            cancel = msgspec.json.encode({"sessionId": session_id})
            self.to_server.append(message.notification("session/cancel", cancel))

    def _receive_other(self, line: bytes) -> None:
        try:
            envelope = message.decode(line)
        except Malformed:
            self.to_gateway.append(line)  # the gateway reports the error
            return
        if envelope.id is ABSENT:
            self.to_gateway.append(line)
        elif envelope.method:
            params = b"{}" if envelope.params is ABSENT else bytes(envelope.params)
            self._question(bytes(envelope.id), envelope.method, params, line)
        else:
            self._response(bytes(envelope.id), envelope, line)

    def _question(self, remote: bytes, method: str, params: bytes, line: bytes) -> None:
        for local, open_one in self._questions.items():
            if open_one.remote is None and (open_one.method, open_one.params) == (method, params):
                open_one.remote = remote
                if open_one.answer is not None:
                    self._answered(local, open_one.answer)
                return
        session_id = text_of(lenient_members(params).get("sessionId")) or ""
        if session_id in self._sessions and self._sessions[session_id].returning:
            for given in self._answers:  # the answer was lost with the connection
                if (given.method, given.params) == (method, params) and given.answer is not None:
                    self.to_server.append(with_id(given.answer, remote))
                    return
        local = remote
        if remote in self._questions:
            self._renamed += 1
            local = b'"again-%d"' % self._renamed
            line = with_id(line, local)
        self._questions[local] = Question(method, params, session_id, remote)
        self.to_gateway.append(line)

    def _response(self, id: bytes, envelope: message.Envelope, line: bytes) -> None:
        request = self._open_requests.pop(id, None)
        self.to_gateway.append(line)
        if request is None:
            return
        ok = envelope.result is not ABSENT and (envelope.error is ABSENT or envelope.error == Raw(b"null"))
        known = self._sessions.get(request.session_id or "")
        if request.method == "session/prompt":
            if known is not None and known.prompt == id:
                known.prompt = None
        elif request.method == "initialize":
            self.is_dragoman = ok and "version" in dragoman_facts(meta_of(envelope.result))
        elif request.method in SETUP:
            self._set_up(request, ok, envelope.result)
        elif request.method in ("session/close", "session/delete"):
            self._sessions.pop(request.session_id or "", None)

    def _set_up(self, request: OpenRequest, ok: bool, result: Raw) -> None:
        if request.method in ("session/new", "session/fork") and ok:
            session_id = text_of(lenient_members(result).get("sessionId"))
            if session_id is not None:
                params = message.members(message.decode(request.line).params)
                self._sessions[session_id] = KnownSession(setup_fields(params))
        elif request.session_id is not None and not ok:
            self._sessions.pop(request.session_id, None)
        elif request.method == "session/resume" and request.session_id is not None:
            known = self._sessions[request.session_id]
            facts = dragoman_facts(meta_of(result))
            last = facts.get("afterSeq" if "afterSeq" in facts else "seq")
            if not request.continues:
                known.seq = known.seq or (last if isinstance(last, int) else 0)

    # -- the connection

    @property
    def can_return(self) -> bool:
        """Whether a lost connection can be restored: the server is a Dragoman, and no setup request is open."""
        return self.is_dragoman and not any(
            request.method in SETUP for request in self._open_requests.values()
        )

    def lost(self) -> None:
        """Handle the loss of the connection: fail the requests that cannot be repeated."""
        self._connection += 1
        for question in self._questions.values():
            question.remote = None
        for known in self._sessions.values():
            known.returning = True
        for id, request in list(self._open_requests.items()):
            if request.method != "session/prompt" and request.method not in REPEATABLE:
                del self._open_requests[id]
                error = internal(
                    f"The connection was lost before {request.method} was answered; try again",
                    "connection_lost",
                )
                self.to_gateway.append(message.failure(id, error.encode()))

    def resume_params(self) -> dict[str, bytes]:
        """The params of `session/resume` for each session."""
        found: dict[str, bytes] = {}
        for session_id, known in self._sessions.items():
            params = {**known.setup, "sessionId": session_id, "_meta": {"dragoman": {"afterSeq": known.seq}}}
            found[session_id] = msgspec.json.encode(params)
        return found

    def returned(self) -> None:
        """Handle a new connection with resumed sessions: repeat the idempotent requests."""
        for request in self._open_requests.values():
            if request.method in REPEATABLE and request.connection != self._connection:
                request.connection = self._connection
                self.to_server.append(request.line)

    def keep_positions(self) -> None:
        """Store the positions for the next connection."""
        for session_id, known in self._sessions.items():
            if known.seq:
                self._positions[session_id] = known.seq

    def _prompt(self, known: KnownSession) -> OpenRequest | None:
        return self._open_requests.get(known.prompt) if known.prompt is not None else None
