"""What the gateway needs from a store: journals, a directory of sessions, and leases on them.

Nothing here knows how it is kept. An engine implements `Store`; the gateway sees these names alone.

A journal is a session's events, numbered from 1 without gaps. An event is opaque bytes without a line feed.
A lease says which process may append; its `epoch` grows whenever it is given, and an append that carries an older one is
refused, so that a process which only believes itself the owner can do no harm.

An append ends in one of three ways. *Stored*: the events survive the death of any process. *Refused* (`Fenced`):
another process owns the session. *Unknown* (`OutcomeUnknown`): they may be stored or not; the same append, with the
same epoch and numbers, is tried again until it ends otherwise, and nothing of it is shown before. Every other error
says that nothing was stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

# -- errors: the caller asked for what cannot be, or the store cannot do it now ------------------------------

LEASE_RENEWAL = 15.0
"""Seconds: a session that was taken from this process while nothing happens in it is noticed within them."""

LIST_PAGE = 50
"""Sessions in one page of a list, unless more are asked for."""


class StoreError(Exception):
    """The store did not do what was asked; the text is a sentence for the user."""

    code: ClassVar[str] = "store_failed"
    """Stable name for `data.reason` on the wire."""


class UnknownSession(StoreError):
    """No such session here: never was, deleted, or made on another machine."""

    code = "unknown_session"


class SessionExists(StoreError):
    """The id, or the agent's own id for it, belongs to a session already."""

    code = "session_exists"


class BadCursor(StoreError):
    """The cursor is garbage or comes from a list with other filters."""

    code = "bad_cursor"


class BadEvent(StoreError):
    """An event with a line feed in it, or a record that cannot be stored as text."""

    code = "bad_event"


class Fenced(StoreError):
    """Another process owns the session now; what this one appends is refused."""

    code = "fenced"


class SequenceGap(Fenced):
    """The append does not continue the journal, mostly because the one before it failed."""

    code = "sequence_gap"

    def __init__(self, message: str, last_seq: int) -> None:
        super().__init__(message)
        self.last_seq = last_seq
        """The last event that is in the journal: go on with the next number."""


class OutcomeUnknown(StoreError):
    """An append that may be stored or not; only the same append can tell."""

    code = "outcome_unknown"


class SessionHeld(StoreError):
    """The session is live in another process, which must be asked instead."""

    code = "session_held"

    def __init__(self, message: str, holder: HeldElsewhere) -> None:
        super().__init__(message)
        self.holder = holder


class StoreUnavailable(StoreError):
    """The store itself is the trouble, whatever is asked of it."""

    code = "store_unavailable"


class StoreClosed(StoreUnavailable):
    """Used after `close`."""

    code = "store_closed"


class StoreBusy(StoreUnavailable):
    """Other processes kept the store locked for too long; trying again later may help."""

    code = "store_busy"


class StoreFull(StoreUnavailable):
    """No space is left."""

    code = "store_full"


class StoreReadOnly(StoreUnavailable):
    """It can be read but not written."""

    code = "store_read_only"


class SessionAway(StoreReadOnly):
    """Another machine had the session last, and nothing proves that it does not have it any more."""

    code = "session_away"


class StoreCorrupt(StoreUnavailable):
    """Damaged, or not a store at all. It is left as it is."""

    code = "store_corrupt"


class SchemaTooNew(StoreUnavailable):
    """Written by a newer Dragoman."""

    code = "schema_too_new"


# -- values --------------------------------------------------------------------------------------------------


class SessionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the directory knows of a session. Times are ISO 8601 in UTC with milliseconds."""

    id: str
    agent: str
    cwd: str
    workspace: str
    created_at: str
    updated_at: str
    state: str
    agent_session_id: str | None = None
    additional_directories: tuple[str, ...] = ()
    sandbox: str | None = None
    title: str | None = None
    forked_from: str | None = None
    extra: dict[str, Any] = {}
    owner: str | None = None
    """Who leased it last and did not give it back; may be dead (see `Leases.holders`)."""
    node: str | None = None
    """The machine that had it last: folders and the agent's own id mean something there."""
    epoch: int = 0
    first_seq: int = 1
    """The oldest event still kept; more than 1 after `prune`."""
    last_seq: int = 0
    """In a list as it was at most a second before its last change; exact from `Directory.get`."""


class SessionChanges(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of a record to change; what is left out stays."""

    agent_session_id: str | UnsetType | None = UNSET
    cwd: str | UnsetType = UNSET
    workspace: str | UnsetType = UNSET
    additional_directories: tuple[str, ...] | UnsetType = UNSET
    sandbox: str | UnsetType | None = UNSET
    title: str | UnsetType | None = UNSET
    updated_at: str | UnsetType = UNSET
    state: str | UnsetType = UNSET
    extra: dict[str, Any] | UnsetType = UNSET


class Row(msgspec.Struct, frozen=True, gc=False):
    """Adjacent events of one journal, as they were stored together."""

    first_seq: int
    ts: int
    """Milliseconds since 1970, of the first event stored in the row."""
    count: int
    data: bytes
    """The events, joined by line feeds; none at the end."""
    epoch: int = 0
    damaged: bool = False
    """Its events are lost: these numbers stand for nothing that can be read."""

    @property
    def last_seq(self) -> int:
        return self.first_seq + self.count - 1

    def events(self) -> list[bytes]:
        return [] if self.damaged else self.data.split(b"\n")


class Page(msgspec.Struct, frozen=True):
    """A part of the list; `next_cursor` is None at its end."""

    records: tuple[SessionRecord, ...]
    next_cursor: str | None


class Owner(msgspec.Struct, frozen=True):
    """A process that owns sessions."""

    node: str
    """Its machine."""
    id: str
    address: str
    """Where it listens for other processes: `unix:PATH` on the same machine."""


class Lease(msgspec.Struct, frozen=True):
    """The right to append, until it is released, lost, or another process takes over after this one's death."""

    session_id: str
    epoch: int
    last_seq: int
    torn: int = 0
    """Bytes at the end of the journal that were no whole batch, and are cut off."""


class HeldElsewhere(msgspec.Struct, frozen=True):
    """A living process has the session."""

    owner: Owner


class Removed(msgspec.Struct, frozen=True):
    """What retention took away."""

    session_id: str
    title: str | None
    events: int
    bytes: int


class StoredSession(msgspec.Struct, frozen=True):
    """How old a session is, and how large."""

    id: str
    updated_at: str
    bytes: int
    """Of its journal."""


# -- the port ------------------------------------------------------------------------------------------------

Done: TypeAlias = Callable[[StoreError | None], None]
Lost: TypeAlias = Callable[[str, StoreError], None]


class Journal(Protocol):
    """Appends never wait; reads do. Call everything from the event loop's thread."""

    @property
    def backlog(self) -> int:
        """Bytes appended and not yet stored."""

    def append(self, session_id: str, epoch: int, first_seq: int, events: list[bytes], done: Done) -> None:
        """Store `events` as `first_seq` and on; `done` is called with the outcome, maybe before this returns.

        The store keeps the list: do not change it afterwards. Calls of `done` follow the order of a session's appends,
        and what comes behind an append that failed fails too. After it, go on with the number that failed.
        """

    async def read(self, session_id: str, after_seq: int, max_bytes: int) -> list[Row]:
        """Rows from `after_seq` + 1 on, whole rows until `max_bytes` is reached; empty at the end."""

    async def read_before(self, session_id: str, before_seq: int, limit: int) -> list[Row]:
        """The last events before `before_seq`, oldest first: `limit` of them, fewer when they are large."""

    async def last_seq(self, session_id: str) -> int: ...

    async def common_seq(self, session_id: str, epoch: int, seq: int) -> int:
        """The last event that the journal shares with a reader who was told `epoch` and has everything up to `seq`.

        Less than `seq` where the journal was brought back to an earlier state, from a back-up or by a loss of power.
        """


class Directory(Protocol):
    """The table of sessions, live and past."""

    async def create(self, record: SessionRecord) -> None:
        """Add a session; with this store's `owner_id` as `owner` it is leased from birth, at its `epoch`."""

    def update(self, session_id: str, epoch: int, changes: SessionChanges, done: Done | None = None) -> None:
        """Change a record soon; needs the current epoch but not a lease."""

    def touch(self, session_id: str, epoch: int, state: str, done: Done) -> None:
        """Note that a session is used now, and its state; written within a second, and of several the last one."""

    async def get(self, session_id: str) -> SessionRecord | None: ...

    async def find(self, agent: str, agent_session_id: str) -> SessionRecord | None:
        """The session that stands for an agent's own one."""

    async def list(
        self,
        *,
        cwd: str | None = None,
        agent: str | None = None,
        query: str | None = None,
        cursor: str | None = None,
        limit: int = LIST_PAGE,
    ) -> Page:
        """Newest `updated_at` first. `query` is looked for in title, cwd and id."""

    async def delete(self, session_id: str) -> bool:
        """Remove record and journal; False if there was none, `SessionHeld` if it is live elsewhere."""


class Leases(Protocol):
    """One owner per session among the processes that share the store."""

    owner: Owner
    """This process, and where it shall listen for the others."""
    on_lost: Lost | None
    """Called with a session whose lease was lost, before any append of it is refused."""

    async def acquire(self, session_id: str, *, force: bool = False) -> Lease | HeldElsewhere:
        """Become the owner, at an epoch that was never given before, if no living process is.

        Raises `SessionAway` if another machine may have it; `force` takes it all the same.
        """

    async def renew(self) -> None:
        """Say that this process still has its sessions, every `LEASE_RENEWAL` seconds; `on_lost` tells which it lost."""

    async def release(self, session_id: str, epoch: int) -> None:
        """Give it back; nothing happens if it was taken over meanwhile."""

    async def holders(self, records: Sequence[SessionRecord]) -> dict[str, Owner]:
        """The living owners of these sessions, this process too; those without one are left out."""


class Retention(Protocol):
    """What removal of old sessions needs (`dragoman.gateway.lifecycle.retention`)."""

    async def stored(self, older_than: str | None = None) -> list[StoredSession]:
        """All sessions, or those not updated since that time; longest untouched first."""

    async def empty(self, session_id: str) -> bool:
        """Remove the events of a session; its record stays, with `first_seq` moved on.

        False if there are none, or this process owns it; `SessionHeld` if another one does.
        """


class Store(Journal, Directory, Leases, Retention, Protocol):
    """All of it, as one engine offers it."""

    writable: bool

    async def close(self) -> None:
        """Store what is queued, give every lease back, let go of all files."""
