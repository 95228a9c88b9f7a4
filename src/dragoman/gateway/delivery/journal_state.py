"""The states of a session's journal, as the owner sees it.

    STORED    events are stored, then sent to clients with their number
    WAITING   a write failed: events wait for the next try and the agent is paused; clients are notified soon
    UNKEPT    waiting took too long: events are sent without a number; storing is retried again and again
    FENCED    another process owns the session: refused events and all later ones are neither stored nor sent
    ENDED     this process ends: events that are not stored yet are sent without a number, so that answers go out

Only stored events have a number, so that no number is given twice. Events sent without one are counted; when storing
works again, a record in their place says how many there were.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from dragoman.gateway.ports.store import (
    BadEvent,
    Fenced,
    SequenceGap,
    StoreClosed,
    StoreError,
    UnknownSession,
)


class JournalState(Enum):
    STORED = "stored"
    WAITING = "waiting"
    UNKEPT = "unkept"
    FENCED = "fenced"
    ENDED = "ended"


MOVES: dict[JournalState, frozenset[JournalState]] = {
    JournalState.STORED: frozenset(
        {JournalState.WAITING, JournalState.UNKEPT, JournalState.FENCED, JournalState.ENDED}
    ),
    JournalState.WAITING: frozenset(
        {JournalState.STORED, JournalState.UNKEPT, JournalState.FENCED, JournalState.ENDED}
    ),
    JournalState.UNKEPT: frozenset({JournalState.STORED, JournalState.FENCED, JournalState.ENDED}),
    JournalState.FENCED: frozenset(),
    JournalState.ENDED: frozenset(),
}

UNNUMBERED = frozenset({JournalState.UNKEPT, JournalState.ENDED})
"""In these states events are sent to clients although they are not stored."""


def check_move(before: JournalState, after: JournalState) -> None:
    if after not in MOVES[before]:
        raise AssertionError(f"a journal that is {before.value} cannot be {after.value} next")


def is_taken(error: StoreError) -> bool:
    """Whether another process owns the session; a `SequenceGap` only means that an earlier append failed."""
    return isinstance(error, Fenced) and not isinstance(error, SequenceGap)


def is_hopeless(error: StoreError) -> bool:
    """Whether waiting cannot help: the journal does not exist, or the store is closed."""
    return isinstance(error, UnknownSession | StoreClosed)


def is_its_own_fault(error: StoreError) -> bool:
    """Whether the events themselves cannot be stored; other events can."""
    return isinstance(error, BadEvent)


class JournalWatcher(Protocol):
    """Callbacks from a journal to its session."""

    def journal_state_changed(self, state: JournalState, error: StoreError | None) -> None:
        """The state is now `state`; called last, when publishing to the feed is allowed again."""

    def journal_delayed(self, error: StoreError | None) -> None:
        """Events have waited for some time because of `error`; None: they no longer wait."""

    def journal_congested(self, congested: bool) -> None:
        """Too much of this session waits for the store; False: no longer."""

    def claim_journal(self) -> None:
        """Acquire the session's lease, then call `claimed` or `not_claimed`."""
