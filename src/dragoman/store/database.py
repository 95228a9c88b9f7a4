"""The database file and its schema: created atomically, checked when opened, migrated, never replaced.

Versions 1 and 2 had the events in the database too, in the tables `heads`, `sessions`, `journal` and `owners`. These
stay for processes of that version that still run; `upkeep/conversion.py` moves the sessions out of them one by one.
Version 3 had no ledger of usage.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Literal, TypeAlias

from dragoman.gateway.ports.store import StoreCorrupt, StoreReadOnly, StoreUnavailable
from dragoman.store import limits
from dragoman.store.failure import explained, too_new
from dragoman.usage.table import STATEMENTS as _USAGE

Sync: TypeAlias = Literal["normal", "full"]
"""`full`: events reported as stored also survive a power failure."""

APPLICATION_ID = 0x44474D4E  # "DGMN": tells our database from another program's
VERSION = 4
READABLE = 3
"""The oldest version of which sessions can be read without a migration."""

_IDENTITY = (
    "CREATE TABLE identity (store_id TEXT NOT NULL)",
    "INSERT INTO identity VALUES (lower(hex(randomblob(16))))",
)
_DIRECTORY = (
    """CREATE TABLE directory (
        n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
        owner TEXT, node TEXT, epoch INTEGER NOT NULL, first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL,
        agent TEXT NOT NULL, agent_session_id TEXT,
        cwd TEXT NOT NULL, workspace TEXT NOT NULL, additional_directories TEXT NOT NULL, sandbox TEXT,
        title TEXT, created_at TEXT NOT NULL, updated_at TEXT NOT NULL, state TEXT NOT NULL,
        forked_from TEXT, extra TEXT NOT NULL
    )""",
    "CREATE INDEX directory_newest ON directory (updated_at)",
    "CREATE INDEX directory_cwd ON directory (cwd, updated_at)",
    "CREATE INDEX directory_agent ON directory (agent, updated_at)",
    """CREATE UNIQUE INDEX directory_agent_session ON directory (agent, agent_session_id)
        WHERE agent_session_id IS NOT NULL""",
)

STEPS: dict[int, tuple[str, ...]] = {
    0: (*_IDENTITY, *_DIRECTORY, *_USAGE),
    1: ("ALTER TABLE owners ADD COLUMN place TEXT NOT NULL DEFAULT ''", *_DIRECTORY, *_USAGE),
    2: (*_DIRECTORY, *_USAGE),
    3: _USAGE,
}
"""Statements that migrate each version to the present one."""

_NO_INDEX = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY_DIRECTORY)


class Database:
    """The path of the database file and the settings of connections to it."""

    def __init__(
        self, path: Path, *, sync: Sync = "normal", busy_seconds: float = limits.BUSY_SECONDS
    ) -> None:
        self.path = path
        self.sync = sync
        self.busy_seconds = busy_seconds
        self._mode = "mode=ro"
        """URI parameter with which the file is opened for reading."""

    def prepare(self) -> sqlite3.Connection:
        """Create the file if there is none, migrate its schema, and connect for writing."""
        with explained(self.path), ExitStack() as failing:
            if not self.path.exists():
                self._make()
            self.check_writable()
            connection = failing.enter_context(closing(self._connect("mode=rw")))
            # With WAL, NORMAL does no fsync at commit: the kernel has a committed write, so it survives the death of
            # any process, and only a power failure can lose the last ones.
            connection.execute(f"PRAGMA synchronous = {self.sync.upper()}")
            connection.execute("PRAGMA secure_delete = ON")  # overwrite deleted rows with zeros
            self._check(connection)
            migrate(connection)
            failing.pop_all()
            return connection

    def prepare_reading(self) -> None:
        """Find the mode in which the file can be read without writing; raises `StoreError` if there is none.

        Reading with WAL creates an index file, which fails on a read-only disk; with an empty log none is needed.
        """
        with explained(self.path):
            if not self.path.exists():
                raise StoreUnavailable(f"There is no session store at {self.path}.")
            try:
                self._check_readable()
            except sqlite3.OperationalError as error:
                log = Path(f"{self.path}-wal")
                if error.sqlite_errorcode not in _NO_INDEX or (log.exists() and log.stat().st_size):
                    raise
                self._mode = "immutable=1"
                self._check_readable()

    def _check_readable(self) -> None:
        with closing(self.reader()) as connection:
            self._check(connection)
            if version(connection) < READABLE:
                raise StoreUnavailable(f"{self.path} is of an older Dragoman; open it once for writing.")

    def reader(self) -> sqlite3.Connection:
        return self._connect(self._mode)

    def _connect(self, mode: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self.path.absolute().as_uri()}?{mode}",
            uri=True,
            timeout=self.busy_seconds,
            isolation_level=None,
            check_same_thread=False,  # used by one thread at a time, but not always the same
        )

    def _make(self) -> None:
        """Build the database under another name and link it into place, so that no process sees half of it."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = self.path.with_name(f".{self.path.name}.{os.urandom(4).hex()}")
        try:
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute("PRAGMA journal_mode = WAL")
                migrate(connection)
            with suppress(FileExistsError):  # another process was faster; use its database
                os.link(draft, self.path)
        finally:
            for leftover in (draft, Path(f"{draft}-wal"), Path(f"{draft}-shm"), Path(f"{draft}-journal")):
                leftover.unlink(missing_ok=True)

    def check_writable(self) -> None:
        # SQLite would fall back to read-only, then fail to create its log with an unhelpful message.
        for place in (self.path, self.path.parent):
            if place.exists() and not os.access(place, os.W_OK):
                raise StoreReadOnly(f"{self.path} cannot be written: {place} is read-only.")

    def _check(self, connection: sqlite3.Connection) -> None:
        """Check the header and the schema; damage elsewhere is found when those pages are read."""
        if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise StoreCorrupt(f"{self.path} is empty or belongs to another program. It was left as it is.")
        found = version(connection)
        if found > VERSION:
            raise too_new(self.path, found, VERSION)
        connection.execute("SELECT * FROM sqlite_master").fetchall()


def version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection) -> None:
    """Migrate the schema in one transaction; another process may have done so meanwhile."""
    if version(connection) >= VERSION:
        return
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        for statement in STEPS.get(version(connection), ()):
            connection.execute(statement)
        if version(connection) < VERSION:
            connection.execute(f"PRAGMA user_version = {VERSION}")


def has_old_tables(connection: sqlite3.Connection) -> bool:
    query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'heads'"
    return connection.execute(query).fetchone() is not None
