"""How a session's events are kept: the states of a journal as its owner sees it.

    STORED    events are stored, then shown with their number
    WAITING   a write failed: events wait for the next try, and the agent with them; people are told soon
    UNKEPT    waiting took too long: events are shown without a number; storing is tried again and again
    FENCED    another process owns the session: what was refused, and all that follows, is neither kept nor shown
    ENDED     this process ends: what is not stored by now is shown without a number, so that answers go out

Only events that are stored have a number, so that none is ever given twice. What was shown without one is counted; when
storing works again, a record in its place says how many there were.
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
"""In these states events are shown although they are not kept."""


def check_move(before: JournalState, after: JournalState) -> None:
    if after not in MOVES[before]:
        raise AssertionError(f"a journal that is {before.value} cannot be {after.value} next")


def is_taken(error: StoreError) -> bool:
    """Another process owns the session; a gap in the numbers only says that an append before failed."""
    return isinstance(error, Fenced) and not isinstance(error, SequenceGap)


def is_hopeless(error: StoreError) -> bool:
    """Waiting does not help: there is no such journal, or no store any more."""
    return isinstance(error, UnknownSession | StoreClosed)


def is_its_own_fault(error: StoreError) -> bool:
    """No store takes these events; others can be stored."""
    return isinstance(error, BadEvent)


class JournalWatcher(Protocol):
    """What a journal tells the session that it belongs to."""

    def journal_state_changed(self, state: JournalState, error: StoreError | None) -> None:
        """Called last, when the feed may be published to again."""

    def journal_delayed(self, error: StoreError | None) -> None:
        """Events have waited for some time because of `error`; None: they do not any more."""

    def journal_congested(self, congested: bool) -> None:
        """More of this session waits for the store than should, or not any more."""

    def claim_journal(self) -> None:
        """Get the right to store anything, then call `claimed`, or `not_claimed`."""
