"""What the gateway needs from a store: journals, a directory of sessions, and leases on them.

Nothing here knows how it is kept. An engine implements `Store`; the gateway sees these names alone.

A journal is a session's events, numbered from 1 without gaps. An event is opaque bytes without a line feed.
A lease says which process may append; its `epoch` grows with each change of hands, and an append that carries
an older one is refused, so that a process which only believes itself the owner can do no harm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

# -- errors: the caller asked for what cannot be, or the store cannot do it now ------------------------------

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
    """Who leased it last and did not give it back; may be dead (see `Leases.owners`)."""
    epoch: int = 0
    first_seq: int = 1
    """The oldest event still kept; more than 1 after `prune`."""
    last_seq: int = 0


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

    @property
    def last_seq(self) -> int:
        return self.first_seq + self.count - 1

    def events(self) -> list[bytes]:
        return self.data.split(b"\n")


class Page(msgspec.Struct, frozen=True):
    """A part of the list; `next_cursor` is None at its end."""

    records: tuple[SessionRecord, ...]
    next_cursor: str | None


class Lease(msgspec.Struct, frozen=True):
    """The right to append, until it is released or another process takes over after this one's death."""

    session_id: str
    epoch: int
    last_seq: int
    former_owner: str | None = None
    """The process that held it and died, so that its unfinished turn is over."""


class HeldElsewhere(msgspec.Struct, frozen=True):
    """A living process that owns a session, and the unix socket where it can be reached."""

    owner_id: str
    socket_path: str


class Removed(msgspec.Struct, frozen=True):
    """What retention took away."""

    session_id: str
    title: str | None
    events: int
    bytes: int


class Usage(msgspec.Struct, frozen=True):
    """How much is stored: sessions, their events' bytes, and bytes on disk."""

    sessions: int
    journal_bytes: int
    disk_bytes: int


# -- the port ------------------------------------------------------------------------------------------------

Done: TypeAlias = Callable[[StoreError | None], None]


class Journal(Protocol):
    """Appends are queued and never wait; reads do. Call everything from the event loop's thread."""

    on_drained: Callable[[], None] | None
    """Called when `congested` turns False again."""

    @property
    def backlog(self) -> int:
        """Bytes appended and not yet stored."""

    @property
    def congested(self) -> bool:
        """More is queued than should be: pause whoever feeds it until `on_drained`."""

    def append(self, session_id: str, epoch: int, first_seq: int, events: list[bytes], done: Done) -> None:
        """Store `events` as `first_seq` and on; `done` is called once they survive the death of any process.

        The store keeps the list: do not change it afterwards. Calls of `done` follow the order of appends.
        """

    async def read(self, session_id: str, after_seq: int, max_bytes: int) -> list[Row]:
        """Rows from `after_seq` + 1 on, whole rows until `max_bytes` is reached; empty at the end."""

    async def read_before(self, session_id: str, before_seq: int, limit: int) -> list[Row]:
        """The last events before `before_seq`, oldest first: `limit` of them, fewer when they are large."""

    async def last_seq(self, session_id: str) -> int: ...


class Directory(Protocol):
    """The table of sessions, live and past."""

    async def create(self, record: SessionRecord) -> None:
        """Add a session; with this store's `owner_id` as `owner` it is leased from birth, at its `epoch`."""

    def update(self, session_id: str, epoch: int, changes: SessionChanges, done: Done | None = None) -> None:
        """Change a record, in order with appends; needs the current epoch but not a lease."""

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

    owner_id: str
    socket_path: str
    """Where this process shall listen for the others."""

    async def acquire(self, session_id: str) -> Lease | HeldElsewhere:
        """Become the owner if nobody alive is; asking for what one holds already gives the same lease."""

    async def release(self, session_id: str, epoch: int) -> None:
        """Give it back; nothing happens if it was taken over meanwhile."""

    async def owners(self) -> tuple[HeldElsewhere, ...]:
        """All processes alive that share the store, this one too."""


class Retention(Protocol):
    """Removal of what is old. Sessions with a living owner are never touched."""

    async def expire(self, older_than: str) -> tuple[Removed, ...]:
        """Delete sessions not updated since that time."""

    async def prune(
        self, *, max_bytes: int | None = None, older_than: str | None = None
    ) -> tuple[Removed, ...]:
        """Empty the journals of sessions longest untouched; their records stay, with `first_seq` moved on."""

    async def usage(self) -> Usage: ...


class Store(Journal, Directory, Leases, Retention, Protocol):
    """All of it, as one engine offers it."""

    writable: bool

    async def close(self) -> None:
        """Store what is queued, give every lease back, let go of all files."""
