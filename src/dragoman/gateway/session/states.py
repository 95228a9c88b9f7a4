"""The life of a session, of a turn and of a question as states, events and tables. No IO.

Rules of a session, in the process that has it in memory:

- One connection at most answers for it: an agent of this process (LIVE), or the process that owns the session, used as
  if it were the agent (FOLLOWING).
- Without one it waits: NEW before the first, PARKED on purpose, GONE because its agent ended, ORPHANED because its owner
  ended.
- A prompt to a session that waits restarts the agent; an orphaned session must be taken over first.
- CLOSED is the end, in this process: the session is no longer in memory here. Work that was under way for it gives up.

Rules of a turn:

- A prompt is answered exactly once: what settles the turn first wins, and everything later is ignored.
- The agent is told of a cancel only after it was sent the prompt. A turn that is cancelled before that settles at once.

Rules of a prompt that waits for the end of a turn:

- It may be edited until it is started or withdrawn. A started one is a turn; a withdrawn one is answered at once.

Rules of a question:

- It is open until its first end: an answer, the end of the wait for one, or a withdrawal, because its turn, its agent or
  its last client ended. The agent gets one answer; what comes later is ignored.
- Where a rule wants several approvals, each but the last leaves it open; one rejection is the answer.

The tables are the only way to change a state. An event that a state does not have is a bug of ours and raises
`IllegalTransition`: only that session ends, and the others go on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, Generic, TypeVar

from dragoman.wire.errors import INTERNAL_ERROR, RpcError

log = logging.getLogger(__name__)


class SessionState(Enum):
    NEW = "new"
    """Made or loaded; no agent was bound yet."""
    LIVE = "live"
    """An agent of this process is bound."""
    PARKED = "parked"
    """Without an agent on purpose: idle, or only read."""
    GONE = "gone"
    """Its agent ended or was let go."""
    FOLLOWING = "following"
    """Another process owns it and is bound in the agent's place."""
    ORPHANED = "orphaned"
    """Another process owned it and is not bound: it ended, or is not reached yet."""
    CLOSED = "closed"
    """Closed, deleted or unloaded; the next load makes another `Session`."""


class SessionEvent(Enum):
    BOUND = "bound"
    """An agent of this process answers for the session from now on."""
    FOLLOWED = "followed"
    """The owner answers for it from now on."""
    HELD = "held"
    """Another process turned out to own it."""
    TAKEN = "taken"
    """This process holds the lease."""
    LOST = "lost"
    """The bound agent, or owner, ended or was let go."""
    PARKED = "parked"
    """The agent was ended to save resources, or none is wanted."""
    CLOSED = "closed"
    """It is being closed or unloaded."""


class TurnState(Enum):
    ASKED = "asked"
    """The prompt was accepted; the agent may have to be restarted first."""
    RUNNING = "running"
    """The agent was sent the prompt."""
    CANCELLING = "cancelling"
    """The agent was told to stop and has not answered yet."""
    SETTLED = "settled"
    """The prompt is answered."""


class TurnEvent(Enum):
    SENT = "sent"
    CANCELLED = "cancelled"
    SETTLED = "settled"


class PromptState(Enum):
    WAITING = "waiting"
    """It is in the queue."""
    STARTED = "started"
    """Its own turn began, or was refused."""
    WITHDRAWN = "withdrawn"
    """It was taken out and answered: by a client, by a cancel, or because the turn before it failed."""


class PromptEvent(Enum):
    EDITED = "edited"
    STARTED = "started"
    WITHDRAWN = "withdrawn"


class QuestionState(Enum):
    OPEN = "open"
    """Clients may answer it."""
    ANSWERED = "answered"
    """A client answered it."""
    WITHDRAWN = "withdrawn"
    """It needs no answer any more: cancelled, or the agent or the client is gone."""
    EXPIRED = "expired"
    """No client answered within `sessions.question_timeout`."""


class QuestionEvent(Enum):
    APPROVED = "approved"
    """Someone approved it, and more approvals are needed."""
    ANSWERED = "answered"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"


State = TypeVar("State", bound=Enum)
Event = TypeVar("Event", bound=Enum)

SESSION: Final[Mapping[SessionState, Mapping[SessionEvent, SessionState]]] = {
    SessionState.NEW: {
        SessionEvent.BOUND: SessionState.LIVE,
        SessionEvent.HELD: SessionState.ORPHANED,
        SessionEvent.TAKEN: SessionState.NEW,
        SessionEvent.PARKED: SessionState.PARKED,
        SessionEvent.LOST: SessionState.GONE,
        SessionEvent.CLOSED: SessionState.CLOSED,
    },
    SessionState.LIVE: {
        SessionEvent.BOUND: SessionState.LIVE,  # loaded again by another client
        SessionEvent.LOST: SessionState.GONE,
        SessionEvent.PARKED: SessionState.PARKED,
        SessionEvent.CLOSED: SessionState.CLOSED,
    },
    SessionState.PARKED: {
        SessionEvent.BOUND: SessionState.LIVE,
        SessionEvent.HELD: SessionState.ORPHANED,
        SessionEvent.TAKEN: SessionState.PARKED,
        SessionEvent.PARKED: SessionState.PARKED,
        SessionEvent.LOST: SessionState.PARKED,
        SessionEvent.CLOSED: SessionState.CLOSED,
    },
    SessionState.GONE: {
        SessionEvent.BOUND: SessionState.LIVE,
        SessionEvent.PARKED: SessionState.PARKED,
        SessionEvent.LOST: SessionState.GONE,  # its agent ended, and the restart that used it gives up
        SessionEvent.CLOSED: SessionState.CLOSED,
    },
    SessionState.FOLLOWING: {
        SessionEvent.FOLLOWED: SessionState.FOLLOWING,
        SessionEvent.LOST: SessionState.ORPHANED,
        SessionEvent.CLOSED: SessionState.CLOSED,
    },
    SessionState.ORPHANED: {
        SessionEvent.FOLLOWED: SessionState.FOLLOWING,
        SessionEvent.HELD: SessionState.ORPHANED,
        SessionEvent.TAKEN: SessionState.PARKED,  # no client asked for an agent yet
        SessionEvent.LOST: SessionState.ORPHANED,
        SessionEvent.CLOSED: SessionState.CLOSED,
    },
    SessionState.CLOSED: {
        SessionEvent.CLOSED: SessionState.CLOSED,
        SessionEvent.LOST: SessionState.CLOSED,
        SessionEvent.PARKED: SessionState.CLOSED,
    },
}

TURN: Final[Mapping[TurnState, Mapping[TurnEvent, TurnState]]] = {
    TurnState.ASKED: {TurnEvent.SENT: TurnState.RUNNING, TurnEvent.SETTLED: TurnState.SETTLED},
    TurnState.RUNNING: {
        TurnEvent.CANCELLED: TurnState.CANCELLING,
        TurnEvent.SETTLED: TurnState.SETTLED,
    },
    TurnState.CANCELLING: {
        TurnEvent.CANCELLED: TurnState.CANCELLING,
        TurnEvent.SETTLED: TurnState.SETTLED,
    },
    TurnState.SETTLED: {},
}

PROMPT: Final[Mapping[PromptState, Mapping[PromptEvent, PromptState]]] = {
    PromptState.WAITING: {
        PromptEvent.EDITED: PromptState.WAITING,
        PromptEvent.STARTED: PromptState.STARTED,
        PromptEvent.WITHDRAWN: PromptState.WITHDRAWN,
    },
    PromptState.STARTED: {},
    PromptState.WITHDRAWN: {},
}

QUESTION: Final[Mapping[QuestionState, Mapping[QuestionEvent, QuestionState]]] = {
    QuestionState.OPEN: {
        QuestionEvent.APPROVED: QuestionState.OPEN,
        QuestionEvent.ANSWERED: QuestionState.ANSWERED,
        QuestionEvent.WITHDRAWN: QuestionState.WITHDRAWN,
        QuestionEvent.EXPIRED: QuestionState.EXPIRED,
    },
    QuestionState.ANSWERED: {},
    QuestionState.WITHDRAWN: {},
    QuestionState.EXPIRED: {},
}


class IllegalTransition(RpcError):
    """An event that the present state does not have: a bug of ours, which ends the session."""

    def __init__(self, state: Enum, event: Enum, session_id: str) -> None:
        super().__init__(
            INTERNAL_ERROR, f"Internal error in the gateway: {state} has no {event} (session {session_id})"
        )


OnIllegal = Callable[[IllegalTransition], None]


class Life(Generic[State, Event]):
    """One thing's state. `send` is the only writer; each change is logged here."""

    __slots__ = ("_name", "_on_illegal", "_table", "state")

    def __init__(
        self,
        name: str,
        table: Mapping[State, Mapping[Event, State]],
        first: State,
        on_illegal: OnIllegal | None = None,
    ) -> None:
        """`name` is the session's id, for the log; `on_illegal` ends that session."""
        self._name = name
        self._table = table
        self._on_illegal = on_illegal
        self.state = first

    def send(self, event: Event) -> None:
        former = self.state
        following = self._table[former].get(event)
        if following is None:
            error = IllegalTransition(former, event, self._name)
            if self._on_illegal is not None:
                self._on_illegal(error)
            raise error
        if following is not former:
            self.state = following
            if log.isEnabledFor(logging.DEBUG):
                facts = {"session": self._name, "state": following.value, "former": former.value}
                log.debug("state changed", extra=facts)


def session_life(session_id: str, on_illegal: OnIllegal | None = None) -> Life[SessionState, SessionEvent]:
    return Life(session_id, SESSION, SessionState.NEW, on_illegal)


def turn_life(session_id: str, on_illegal: OnIllegal | None = None) -> Life[TurnState, TurnEvent]:
    return Life(session_id, TURN, TurnState.ASKED, on_illegal)


def prompt_life(session_id: str, on_illegal: OnIllegal | None = None) -> Life[PromptState, PromptEvent]:
    return Life(session_id, PROMPT, PromptState.WAITING, on_illegal)


def question_life(session_id: str, on_illegal: OnIllegal | None = None) -> Life[QuestionState, QuestionEvent]:
    return Life(session_id, QUESTION, QuestionState.OPEN, on_illegal)
