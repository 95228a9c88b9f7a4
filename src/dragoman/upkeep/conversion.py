"""Moves the sessions of a store of version 1 or 2, which had their events in the database, into files.

Sessions are moved one by one, and only if their owner is dead: the rows are written to files, flushed to the disk and
read back, then one transaction moves the record from the old tables to the directory. If interrupted before that
transaction, the session is moved again at the next start. The old rows stay until every session was moved and no
process of the old version runs.
"""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from dragoman.atomic_file import sync_folder
from dragoman.gateway.ports.store import Row, SessionExists, StoreCorrupt, StoreError
from dragoman.store import database, directory, locks, segments
from dragoman.store.database import Database
from dragoman.store.failure import explained
from dragoman.store.locks import Folder
from dragoman.store.writer import Writer
from dragoman.upkeep.old_owners import is_alive

log = logging.getLogger(__name__)

Say: TypeAlias = Callable[[str], None]

LOCK = ".conversion"
SAY_SECONDS = 0.5
_SEQ_BITS = 36
_SEQ_MASK = (1 << _SEQ_BITS) - 1
_BODY = (
    "agent, agent_session_id, cwd, workspace, additional_directories, sandbox, title, created_at, updated_at, state, "
    "forked_from, extra"
)


class Old(Struct, frozen=True):
    """A session in the old tables."""

    n: int
    id: str
    owner: str | None
    epoch: int
    first_seq: int
    last_seq: int


class Converted(Struct):
    """The result of a conversion."""

    moved: int = 0
    failed: int = 0
    processes: tuple[int, ...] = ()
    """Ids of processes of the old version that still run; their sessions are not moved until they end."""


def is_needed(path: Path) -> bool:
    """Whether the database at `path` has old tables; quick, and changes nothing."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            return database.has_old_tables(connection)
    except sqlite3.Error:
        return False  # opening the store reports the error


def convert(path: Path, say: Say) -> Converted:
    """Move all sessions that can be moved; blocks. Processes that start at the same time take turns."""
    folder = Folder(path.absolute().parent)
    with explained(path), closing(Database(path).prepare()) as connection, _alone(folder, say):
        if not database.has_old_tables(connection):
            return Converted()
        return _convert(connection, folder, say)


def _convert(connection: sqlite3.Connection, folder: Folder, say: Say) -> Converted:
    living = _living(connection, folder.root)
    query = "SELECT n, id, owner, epoch, first_seq, last_seq FROM heads ORDER BY n"
    sessions = [Old(*row) for row in connection.execute(query)]
    ready = [old for old in sessions if old.owner not in living]
    result = Converted(processes=tuple(sorted(living.values())))
    said = 0.0
    sync_folder(folder.root)  # `journal` may be new in it
    for number, old in enumerate(ready, 1):
        if time.monotonic() - said > SAY_SECONDS or number == len(ready):
            said = time.monotonic()
            say(f"converting sessions to files: {number} of {len(ready)}")
        try:
            _move(connection, folder, old)
            result.moved += 1
        except (
            StoreError,
            sqlite3.Error,
            OSError,
            TypeError,
            ValueError,
        ) as error:  # a row may hold anything
            result.failed += 1
            log.error("session stays in the old store: %s", error, extra={"session": old.id})
    waiting = len(sessions) - len(ready)
    if waiting:
        pids = ", ".join(map(str, result.processes))
        say(
            f"{waiting} sessions are still open in older Dragoman processes ({pids}) and are not shown until those end"
        )
    if not (waiting or result.failed or living):
        _drop(connection, say)
    return result


def _living(connection: sqlite3.Connection, root: Path) -> dict[str, int]:
    """Owners of the old version that may still run, with their process ids."""
    found = {}
    for owner_id, lock_path, place, pid in connection.execute("SELECT id, lock_path, place, pid FROM owners"):
        lock = root / "owners" / f"{owner_id}.lock" if place else Path(lock_path)
        if is_alive(lock, place, pid):
            found[owner_id] = pid
    return found


def _move(connection: sqlite3.Connection, folder: Folder, old: Old) -> None:
    lock = _write(connection, folder.of(old.id), old) if old.last_seq else None
    try:
        connection.execute("BEGIN IMMEDIATE")
        query = "SELECT n, id, owner, epoch, first_seq, last_seq FROM heads WHERE n = ?"
        now = connection.execute(query, (old.n,)).fetchone()
        if now is None or Old(*now) != old:
            raise StoreCorrupt(f"Session {old.id} was changed by an older Dragoman while it was converted.")
        _add(connection, old)
        connection.execute("DELETE FROM sessions WHERE n = ?", (old.n,))
        connection.execute("DELETE FROM heads WHERE n = ?", (old.n,))
        connection.execute("COMMIT")
        if lock is not None:
            directory.describe(connection, folder, old.id)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if lock is not None:
            lock.close()


def _add(connection: sqlite3.Connection, old: Old) -> None:
    names = [name.strip() for name in _BODY.split(",")]
    body = connection.execute(f"SELECT {_BODY} FROM sessions WHERE n = ?", (old.n,)).fetchone()
    if body is None:
        raise StoreCorrupt(f"The record of session {old.id} is missing.")
    columns = {**dict(zip(names, body, strict=True)), "id": old.id, "owner": None, "node": None}
    columns |= {"epoch": old.epoch, "first_seq": old.first_seq, "last_seq": old.last_seq}
    try:
        directory.create(connection, columns)
    except SessionExists:  # the agent issued its id again since, to a session of this version
        directory.create(connection, {**columns, "agent_session_id": None})


def _write(connection: sqlite3.Connection, target: Path, old: Old) -> locks.SessionLock:
    """Write the session's rows to files and read them back; returns the session's lock, held."""
    lock = locks.take(target, make=True)
    try:
        for leftover in target.glob(f"*{segments.SUFFIX}"):
            leftover.unlink()  # of a conversion that was interrupted
        _write_rows(_rows(connection, old), target, old)
        _compare(_rows(connection, old), target, old)
        sync_folder(target)
        sync_folder(target.parent)
    except BaseException:
        lock.close()
        raise
    return lock


def _write_rows(rows: Iterator[Row], target: Path, old: Old) -> None:
    """Write rows to segments; events that the old store lost leave a gap between two segments."""
    writer = Writer(target, segments.End(old.first_seq, old.first_seq - 1), old.epoch, durable=True)
    try:
        for row in rows:
            if row.first_seq != writer.next_seq:
                writer.sync()
                writer.close()
                end = segments.End(row.first_seq, row.first_seq - 1)
                writer = Writer(target, end, old.epoch, durable=True)
            writer.write(row.first_seq, row.events(), row.ts)
        writer.sync()
        if writer.next_seq <= old.last_seq or not segments.segments(
            target
        ):  # the end is lost, or all was pruned
            segments.begin(target, old.last_seq + 1, old.epoch)
    finally:
        writer.close()


def _compare(rows: Iterator[Row], target: Path, old: Old) -> None:
    reader = segments.Reader()
    if reader.end(target).last_seq != old.last_seq:
        raise StoreCorrupt(f"Session {old.id} ends elsewhere after its conversion.")
    for row in rows:
        position = row.first_seq - 1
        events: list[bytes] = []
        while len(events) < row.count and (found := reader.read(target, position, 1)):
            events += [event for each in found for event in each.events()]
            position = found[-1].last_seq
        if events[: row.count] != row.events():
            raise StoreCorrupt(f"Event {row.first_seq} of session {old.id} differs after its conversion.")


def _rows(connection: sqlite3.Connection, old: Old) -> Iterator[Row]:
    span = (old.n << _SEQ_BITS, (old.n + 1) << _SEQ_BITS)
    query = "SELECT key, ts, count, data FROM journal WHERE key >= ? AND key < ? ORDER BY key"
    for key, ts, count, data in connection.execute(query, span):
        yield Row(key & _SEQ_MASK, ts, count, data)


def _drop(connection: sqlite3.Connection, say: Say) -> None:
    """Drop the old tables, after flushing the new files to the disk."""
    say("removing the old journal from dragoman.db")
    os.sync()
    connection.execute("BEGIN IMMEDIATE")
    for table in ("journal", "heads", "sessions", "owners"):
        connection.execute(f"DROP TABLE {table}")
    connection.execute("COMMIT")
    with suppress(sqlite3.Error):  # a process reads: free pages are reused anyway
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextmanager
def _alone(folder: Folder, say: Say) -> Iterator[None]:
    """Hold the conversion's lock; waits for another process that converts the same store."""
    folder.journals.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(folder.journals / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another Dragoman process that converts the sessions")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
