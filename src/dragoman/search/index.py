"""The index: `search.db` in the state folder, made of the journals and disposable at any time.

`passages` has the texts and `words` (FTS5) the words in them. A passage's number grows with its time, so that the newest
matches come first without sorting: the second since 1970 in the upper bits, a counter in the lower 14. `tags` has a word
each for a passage's agent and folder (`names`): a search in one of them reads no passages of others.

`sessions` says how far each journal was read. Everything up to `cursor` is complete; passages after it belong to a turn
that had not ended at event `seen`, and are replaced by the next reading; `undone` has the ranges of events that a rewind
undid, whose passages are found and marked. Each step is one transaction that holds
SQLite's write lock, so that several processes may feed the index and every event is in it once.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from dragoman.search.passages import Passage

FILE = "search.db"
LOCK = "search.lock"
FILES = (FILE, f"{FILE}-wal", f"{FILE}-shm", f"{FILE}-journal")
APPLICATION_ID = 0x44474D53  # "DGMS"
VERSION = 2
BUSY_SECONDS = 10.0
"""Longest wait for another process that feeds the index; its steps take less than a second."""
COUNTER_BITS = 14

_SCHEMA = (
    """CREATE TABLE sessions (
        n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, agent TEXT NOT NULL, cwd TEXT NOT NULL, title TEXT,
        source TEXT NOT NULL, first_seq INTEGER NOT NULL, cursor INTEGER NOT NULL, seen INTEGER NOT NULL,
        undone BLOB NOT NULL DEFAULT x''
    )""",
    """CREATE TABLE names (
        n INTEGER PRIMARY KEY, kind TEXT NOT NULL, value TEXT NOT NULL, UNIQUE (kind, value)
    )""",
    """CREATE TABLE passages (
        n INTEGER PRIMARY KEY, session INTEGER NOT NULL, first_seq INTEGER NOT NULL, who TEXT NOT NULL,
        text TEXT NOT NULL, tags TEXT NOT NULL, marks BLOB NOT NULL
    )""",
    "CREATE INDEX passages_session ON passages (session, first_seq)",
    """CREATE VIRTUAL TABLE words USING fts5 (
        text, tags, content = 'passages', content_rowid = 'n', tokenize = 'unicode61 remove_diacritics 2'
    )""",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {VERSION}",
)

Say: TypeAlias = Callable[[str], object]


class Unusable(Exception):
    """The file is damaged, or of another version or program; the text says why."""


class Source(Struct, frozen=True):
    """A session whose words are searched, from the directory or from an agent's own history."""

    id: str
    agent: str
    cwd: str
    title: str | None
    kind: str = "journal"
    """`journal`, or `history` for a session that only its agent has."""
    first_seq: int = 1
    last_seq: int = 0
    open: bool = False
    """A process has it open, so that `last_seq` may be behind."""


class Reached(Struct):
    """How far a session was read."""

    n: int
    first_seq: int = 1
    cursor: int = 0
    seen: int = 0


class Index:
    """An open index; used by one thread at a time."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def close(self) -> None:
        self.connection.close()

    @contextmanager
    def step(self) -> Iterator[None]:
        """One transaction, which waits for those of other processes."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    def reached(self, source: Source) -> Reached:
        """How far a session was read; its row is made or corrected. Called within a step."""
        query = "SELECT n, first_seq, cursor, seen, agent, cwd, title FROM sessions WHERE id = ?"
        row = self.connection.execute(query, (source.id,)).fetchone()
        if row is not None and row[4:6] != (source.agent, source.cwd):
            self.forget(source.id)  # moved to another folder
            row = None
        if row is None:
            facts = (source.id, source.agent, source.cwd, source.title, source.kind, source.first_seq)
            made = self.connection.execute(
                "INSERT INTO sessions (id, agent, cwd, title, source, first_seq, cursor, seen)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, 0)",
                (*facts, source.first_seq - 1),
            )
            return Reached(int(made.lastrowid or 0), source.first_seq, source.first_seq - 1)
        found = Reached(*row[:4])
        if row[6] != source.title:
            self.connection.execute("UPDATE sessions SET title = ? WHERE n = ?", (source.title, found.n))
        if source.first_seq > found.first_seq:  # retention removed events
            self._remove("session = ? AND first_seq < ?", (found.n, source.first_seq))
            found.first_seq, found.cursor = source.first_seq, max(found.cursor, source.first_seq - 1)
        return found

    def known(self) -> dict[str, tuple[str, str, str | None, str, int, int]]:
        """By id: agent, folder, title, kind, `first_seq` and `seen` of all sessions."""
        query = "SELECT id, agent, cwd, title, source, first_seq, seen FROM sessions"
        return {row[0]: row[1:] for row in self.connection.execute(query)}

    def add(self, source: Source, reached: Reached, passages: Iterable[Passage]) -> None:
        """Replace what was read after the cursor by `passages`, and store how far the session was read."""
        self._remove("session = ? AND first_seq > ?", (reached.n, reached.cursor))
        tags = f"{self._tag('agent', source.agent)} {self._tag('cwd', source.cwd)}"
        for passage in passages:
            n = self._number(passage.at)
            marks = array("Q", [value for mark in passage.marks for value in mark]).tobytes()
            row = (n, reached.n, passage.first_seq, passage.who, passage.text, tags, marks)
            self.connection.execute("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            self.connection.execute(
                "INSERT INTO words (rowid, text, tags) VALUES (?, ?, ?)", (n, passage.text, tags)
            )

    def store(self, reached: Reached) -> None:
        values = (reached.first_seq, reached.cursor, reached.seen, reached.n)
        self.connection.execute("UPDATE sessions SET first_seq = ?, cursor = ?, seen = ? WHERE n = ?", values)

    def mark_undone(self, reached: Reached, ranges: Iterable[tuple[int, int]]) -> None:
        """Store the ranges of events that are undone now, in place of those before."""
        marks = array("Q", [number for pair in ranges for number in pair]).tobytes()
        self.connection.execute("UPDATE sessions SET undone = ? WHERE n = ?", (marks, reached.n))

    def forget(self, session_id: str, before: int | None = None) -> None:
        """Remove a session, or only its passages before event `before`. Called within a step."""
        row = self.connection.execute("SELECT n FROM sessions WHERE id = ?", (session_id,)).fetchone()
        if row is None:
            return
        if before is not None:
            self._remove("session = ? AND first_seq < ?", (row[0], before))
            return
        self._remove("session = ?", (row[0],))
        self.connection.execute("DELETE FROM sessions WHERE n = ?", (row[0],))

    def _remove(self, where: str, values: tuple[int, ...]) -> None:
        self.connection.execute(
            "INSERT INTO words (words, rowid, text, tags)"
            f" SELECT 'delete', n, text, tags FROM passages WHERE {where}",
            values,
        )
        self.connection.execute(f"DELETE FROM passages WHERE {where}", values)

    def _number(self, at: int) -> int:
        """The next free number for a passage of that time."""
        first = (at // 1000) << COUNTER_BITS
        query = "SELECT max(n) FROM passages WHERE n >= ? AND n < ?"
        while True:
            last = self.connection.execute(query, (first, first + (1 << COUNTER_BITS))).fetchone()[0]
            if last is None:
                return first
            if last + 1 < first + (1 << COUNTER_BITS):
                return int(last) + 1
            first += 1 << COUNTER_BITS

    def _tag(self, kind: str, value: str) -> str:
        self.connection.execute("INSERT OR IGNORE INTO names (kind, value) VALUES (?, ?)", (kind, value))
        query = "SELECT n FROM names WHERE kind = ? AND value = ?"
        return tag(self.connection.execute(query, (kind, value)).fetchone()[0])


def tag(n: int) -> str:
    """The word in `tags` for a row of `names`."""
    return f"t{n}"


def open_index(state: Path, say: Say = lambda text: None) -> Index:
    """Open the index for writing; one that cannot be used is made anew, and `say` is told why."""
    path = state / FILE
    with _alone(state):
        if path.exists():
            try:
                return _connect(path)
            except Unusable as error:
                say(f"{path} {error}: it is made again from the journals")
                remove(state)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA:
                connection.execute(statement)
            connection.execute("COMMIT")
        return _connect(path)


def remove(state: Path) -> None:
    """Remove the index, which is made again from the journals."""
    for name in FILES:
        (state / name).unlink(missing_ok=True)


def forget(state: Path, session_id: str, before: int | None = None) -> None:
    """Remove a session from the index, if there is one; also from its log."""
    if not (state / FILE).exists():
        return
    try:
        with closing(_connect(state / FILE)) as index, index.step():
            index.forget(session_id, before)
        with closing(_connect(state / FILE)) as index:
            index.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except Unusable:
        remove(state)  # made again without the session
    except sqlite3.OperationalError:  # busy for too long: the next reader of the index removes what is gone
        return


def check(state: Path) -> str | None:
    """Why the index cannot be used; None if it can, or if there is none."""
    if not (state / FILE).exists():
        return None
    try:
        with closing(_connect(state / FILE)) as index:
            found = index.connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            index.connection.execute("INSERT INTO words (words) VALUES ('integrity-check')")
    except Unusable as error:
        return str(error)
    except sqlite3.OperationalError:
        return None  # busy, or a read-only disk
    except sqlite3.DatabaseError as error:
        return f"is damaged ({error})"
    return None if found == "ok" else f"is damaged ({found})"


def _connect(path: Path) -> Index:
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise Unusable("is no index of Dragoman's")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version != VERSION:
            raise Unusable(f"has the format {version} instead of {VERSION}")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except Unusable:
        connection.close()
        raise
    except sqlite3.OperationalError:
        connection.close()
        raise
    except sqlite3.DatabaseError as error:
        connection.close()
        raise Unusable(f"is damaged ({error})") from error
    return Index(connection)


@contextmanager
def _alone(state: Path) -> Iterator[None]:
    """Hold the lock under which the file is made and replaced."""
    descriptor = os.open(state / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        with suppress(OSError):  # a disk without locks: at worst the index is made twice
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
