"""What the gateway needs from a store: journals, a directory of sessions, and leases on them.

Nothing here depends on how data is stored. An engine implements `Store`; the gateway uses these names alone.

A journal is a session's events, numbered from 1 without gaps. An event is opaque bytes without a line feed.
A lease says which process may append; its `epoch` grows whenever it is given, and an append with an older epoch is
refused, so that a process which wrongly believes itself the owner can do no harm.

An append ends in one of three ways. *Stored*: the events survive the death of any process. *Refused* (`Fenced`):
another process owns the session. *Unknown* (`OutcomeUnknown`): the events may be stored or not; the same append, with
the same epoch and numbers, is retried until the outcome is known, and its events are not sent to clients before. Every
other error means that nothing was stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.gateway.ports.usage import Ledger
from dragoman.wire.framing import split_lines

# -- errors: the request is invalid, or the store cannot do it now -------------------------------------------

LEASE_RENEWAL = 15.0
"""Seconds between renewals: within them a process notices that an idle session was taken from it."""

LIST_PAGE = 50
"""Default number of sessions in one page of a list."""


class StoreError(Exception):
    """The store did not do what was asked; the text is a sentence for the user."""

    code: ClassVar[str] = "store_failed"
    """Stable name for `data.reason` on the wire."""


class UnknownSession(StoreError):
    """No such session in this store: it never existed, was deleted, or was made on another machine."""

    code = "unknown_session"


class SessionExists(StoreError):
    """The id, or the agent's session id, belongs to another session already."""

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
        """The number of the last event in the journal; the next append continues after it."""


class OutcomeUnknown(StoreError):
    """An append may be stored or not; only a retry of the same append can find out."""

    code = "outcome_unknown"


class SessionHeld(StoreError):
    """The session is live in another process, which must be asked instead."""

    code = "session_held"

    def __init__(self, message: str, holder: HeldElsewhere) -> None:
        super().__init__(message)
        self.holder = holder


class StoreUnavailable(StoreError):
    """The store itself has failed, whatever the request."""

    code = "store_unavailable"


class StoreClosed(StoreUnavailable):
    """The store was used after `close`."""

    code = "store_closed"


class StoreBusy(StoreUnavailable):
    """Other processes held the store's lock for too long; a later retry may succeed."""

    code = "store_busy"


class StoreFull(StoreUnavailable):
    """No space is left."""

    code = "store_full"


class StoreReadOnly(StoreUnavailable):
    """The store can be read but not written."""

    code = "store_read_only"


class SessionAway(StoreReadOnly):
    """Another machine owned the session last, and may still own it."""

    code = "session_away"


class StoreCorrupt(StoreUnavailable):
    """The store is damaged, or is no store at all; it is left unchanged."""

    code = "store_corrupt"


class SchemaTooNew(StoreUnavailable):
    """The store was written by a newer Dragoman."""

    code = "schema_too_new"


# -- values --------------------------------------------------------------------------------------------------


class SessionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The directory's record of a session. Times are ISO 8601 in UTC with milliseconds."""

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
    """The process that acquired the lease last and did not release it; may be dead (see `Leases.holders`)."""
    node: str | None = None
    """The machine of the last owner, on which the folders and the agent's session id are valid."""
    epoch: int = 0
    first_seq: int = 1
    """The oldest event still stored; more than 1 after `prune`."""
    last_seq: int = 0
    """The last event; in a list up to a second old, from `Directory.get` exact."""


class SessionChanges(msgspec.Struct, frozen=True, kw_only=True):
    """Changes to a record; fields that are not set stay as they are."""

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
    """The events with these numbers are lost and cannot be read."""

    @property
    def last_seq(self) -> int:
        return self.first_seq + self.count - 1

    def events(self) -> list[bytes]:
        return [] if self.damaged else split_lines(self.data)

    @classmethod
    def lost(cls, first_seq: int, last_seq: int) -> Row:
        """A row that stands for events that are damaged or missing."""
        return cls(first_seq, 0, last_seq - first_seq + 1, b"", damaged=True)

    def part(self, first: int, last: int) -> Row | None:
        """The part from event `first` to event `last`, None if there is none."""
        if self.first_seq >= first and self.last_seq <= last:
            return self
        begin, end = max(self.first_seq, first), min(self.last_seq, last)
        if begin > end:
            return None
        if self.damaged:
            return Row.lost(begin, end)
        events = self.events()[begin - self.first_seq : end - self.first_seq + 1]
        return Row(begin, self.ts, len(events), b"\n".join(events), self.epoch)


class Page(msgspec.Struct, frozen=True):
    """One page of a list; `next_cursor` is None on the last page."""

    records: tuple[SessionRecord, ...]
    next_cursor: str | None


class Owner(msgspec.Struct, frozen=True):
    """A process that owns sessions."""

    node: str
    """The machine that the process runs on."""
    id: str
    address: str
    """Where the process listens for others: `unix:PATH` on the same machine."""


class Lease(msgspec.Struct, frozen=True):
    """The right to append, until it is released or lost, or another process takes over after this one has died."""

    session_id: str
    epoch: int
    last_seq: int
    torn: int = 0
    """Number of bytes of an incomplete batch that were cut off at the end of the journal."""


class HeldElsewhere(msgspec.Struct, frozen=True):
    """Another living process owns the session."""

    owner: Owner


class Removed(msgspec.Struct, frozen=True):
    """What retention removed of one session."""

    session_id: str
    title: str | None
    events: int
    bytes: int


class StoredSession(msgspec.Struct, frozen=True):
    """Age and size of a session."""

    id: str
    updated_at: str
    bytes: int
    """Size of the journal."""


# -- the port ------------------------------------------------------------------------------------------------

Done: TypeAlias = Callable[[StoreError | None], None]
Lost: TypeAlias = Callable[[str, StoreError], None]


class Journal(Protocol):
    """Journals of sessions: appends never wait, reads do. All calls come from the event loop's thread."""

    @property
    def backlog(self) -> int:
        """Bytes appended and not yet stored."""

    def append(self, session_id: str, epoch: int, first_seq: int, events: list[bytes], done: Done) -> None:
        """Store `events`, numbered from `first_seq`; `done` is called with the outcome, maybe before this returns.

        The store keeps a reference to the list: do not change it afterwards. Calls of `done` follow the order of a
        session's appends; appends after a failed one fail too. The next append then starts with the number that failed.
        """

    async def read(self, session_id: str, after_seq: int, max_bytes: int) -> list[Row]:
        """Rows from `after_seq` + 1 on, whole rows until `max_bytes` is reached; empty at the end."""

    async def read_before(self, session_id: str, before_seq: int, limit: int) -> list[Row]:
        """The last events before `before_seq`, oldest first: up to `limit`, fewer if they are large."""

    async def last_seq(self, session_id: str) -> int: ...

    async def common_seq(self, session_id: str, epoch: int, seq: int) -> int:
        """The last event that the journal shares with a reader who was sent `epoch` and has everything up to `seq`.

        Less than `seq` if the journal is in an earlier state, after a restore from a backup or a loss of power.
        """


class Directory(Protocol):
    """The table of sessions, live and past."""

    async def create(self, record: SessionRecord) -> None:
        """Add a session; if its `owner` is this process, it is leased at once, with the record's `epoch`."""

    def update(self, session_id: str, epoch: int, changes: SessionChanges, done: Done | None = None) -> None:
        """Change a record soon, without waiting; needs the current epoch but not a lease."""

    def touch(self, session_id: str, epoch: int, state: str, done: Done) -> None:
        """Set the time of use and the state; written within a second, of several calls only the last."""

    async def get(self, session_id: str) -> SessionRecord | None: ...

    async def find(self, agent: str, agent_session_id: str) -> SessionRecord | None:
        """The session with this agent's session id."""

    async def list(
        self,
        *,
        cwd: str | None = None,
        agent: str | None = None,
        query: str | None = None,
        cursor: str | None = None,
        limit: int = LIST_PAGE,
    ) -> Page:
        """A page of sessions, newest `updated_at` first; `query` is searched in title, cwd and id."""

    async def delete(self, session_id: str) -> bool:
        """Remove record and journal; False if there was none, `SessionHeld` if it is live elsewhere."""


class Leases(Protocol):
    """One owner per session among the processes that share the store."""

    owner: Owner
    """This process, with the address at which it must listen for others."""
    on_lost: Lost | None
    """Called with a session whose lease was lost, before an append to it is refused."""

    async def acquire(self, session_id: str, *, force: bool = False) -> Lease | HeldElsewhere:
        """Become the owner with a new epoch, unless another living process is the owner.

        Raises `SessionAway` if another machine may own it; with `force` it is acquired anyway.
        """

    async def renew(self) -> None:
        """Renew all leases of this process; called every `LEASE_RENEWAL` seconds. `on_lost` reports lost ones."""

    async def release(self, session_id: str, epoch: int) -> None:
        """Release a lease; does nothing if another process took the session over meanwhile."""

    async def holders(self, records: Sequence[SessionRecord]) -> dict[str, Owner]:
        """The living owners of these sessions, this process included; sessions without one are left out."""


class Retention(Protocol):
    """Methods to remove old sessions (`dragoman.gateway.lifecycle.retention`)."""

    async def stored(self, older_than: str | None = None) -> list[StoredSession]:
        """All sessions, or those not updated since `older_than`; least recently updated first."""

    async def empty(self, session_id: str) -> bool:
        """Remove the events of a session; its record stays, with a higher `first_seq`.

        False if there are no events, or this process owns it; raises `SessionHeld` if another process does.
        """


class Store(Journal, Directory, Leases, Retention, Protocol):
    """The complete interface of a store engine."""

    writable: bool

    @property
    def usage(self) -> Ledger: ...

    async def close(self) -> None:
        """Store what is queued, release all leases, close all files."""
