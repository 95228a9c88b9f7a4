"""What may be removed for its age or size, in SQL. A session with a living owner is left alone."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from dragoman.gateway.ports.store import Removed
from dragoman.store import directory, leases, limits
from dragoman.store.schema import SEQ_BITS

_OLDEST = """SELECT heads.id, bytes, updated_at FROM sessions JOIN heads USING (n)
    WHERE updated_at < ? ORDER BY updated_at, n"""
_ONE = """SELECT n, owner, title, first_seq, last_seq, bytes FROM sessions JOIN heads USING (n)
    WHERE heads.id = ?"""
_END_OF_TIME = "\U0010ffff"  # sorts after every date


def expired(connection: sqlite3.Connection, older_than: str) -> list[str]:
    return [row[0] for row in connection.execute(_OLDEST, (older_than,))]


def prunable(connection: sqlite3.Connection, older_than: str | None) -> list[tuple[str, int, bool]]:
    """Sessions with something in their journal, oldest first: id, bytes, whether older than `older_than`."""
    rows = connection.execute(_OLDEST, (_END_OF_TIME,))
    return [(row[0], row[1], older_than is not None and row[2] < older_than) for row in rows if row[1]]


def remove(
    connection: sqlite3.Connection, session_id: str, locks: Path, *, keep_record: bool
) -> Removed | None:
    """Empty a session's journal or delete it whole; None if it is gone or has a living owner."""
    found = connection.execute(_ONE, (session_id,)).fetchone()
    if found is None or leases.living(connection, found[1], locks) is not None:
        return None
    n, _, title, first_seq, last_seq, size = found
    if keep_record:
        span = (n << SEQ_BITS, (n + 1) << SEQ_BITS)
        connection.execute("DELETE FROM journal WHERE key >= ? AND key < ?", span)
        connection.execute("UPDATE heads SET first_seq = last_seq + 1, bytes = 0 WHERE n = ?", (n,))
    else:
        directory.delete(connection, n)
    return Removed(session_id, title, last_seq - first_seq + 1, size)


def shrink(connection: sqlite3.Connection) -> bool:
    """Give some free pages back to the disk; whether there are more."""
    connection.execute(f"PRAGMA incremental_vacuum({limits.VACUUM_PAGES})").fetchall()
    return bool(connection.execute("PRAGMA freelist_count").fetchone()[0])


def totals(connection: sqlite3.Connection) -> tuple[int, int]:
    sessions, size = connection.execute("SELECT count(*), coalesce(sum(bytes), 0) FROM heads").fetchone()
    return int(sessions), int(size)
