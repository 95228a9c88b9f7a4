"""The rows of journals, in SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from dragoman.gateway.ports.store import Row, SequenceGap, StoreError
from dragoman.store import limits
from dragoman.store.directory import fenced, number, unknown
from dragoman.store.schema import SEQ_BITS, SEQ_MASK

# Fence, number check and write in one statement: no row is made unless epoch and last_seq are as expected.
_INSERT = f"""INSERT INTO journal (key, count, ts, data)
    SELECT n << {SEQ_BITS} | ?, ?, ?, ? FROM heads WHERE id = ? AND epoch = ? AND last_seq = ?"""
# The same for several sessions at once. After each call of SQLite the writer has to win the interpreter lock back from a
# busy event loop, so one call per session made every session wait for all the others. CROSS JOIN keeps SQLite from
# looking through all heads for each row.
_INSERT_MANY = """INSERT INTO journal (key, count, ts, data)
    SELECT n << {bits} | given.column1, given.column2, given.column3, given.column4
    FROM (VALUES {rows}) AS given CROSS JOIN heads ON heads.id = given.column5
    WHERE heads.epoch = given.column6 AND heads.last_seq = given.column7"""
_THERE = f"""SELECT 1 FROM heads JOIN journal ON journal.key = n << {SEQ_BITS} | ?
    WHERE id = ? AND epoch = ? AND ts = ? AND data = ?"""
_NOBODY = (None,) * 7
_INSERTS = {  # few texts, so that each is compiled once; places that are left over stay empty
    size: _INSERT_MANY.format(rows=", ".join(["(?,?,?,?,?,?,?)"] * size), bits=SEQ_BITS)
    for size in (2, 4, 8, 16, 32, 64, 128)
}
MOST_TOGETHER = max(_INSERTS)
_FORWARD = """SELECT key, ts, count, data FROM journal WHERE key < ? AND key >= coalesce(
    (SELECT max(key) FROM journal WHERE key >= ? AND key <= ?), ?) ORDER BY key"""
_BACKWARD = "SELECT key, ts, count, data FROM journal WHERE key > ? AND key < ? ORDER BY key DESC"


def append(connection: sqlite3.Connection, session_id: str, epoch: int, row: Row) -> None:
    """Write one row, or raise `Fenced` and leave the journal as it is."""
    if connection.execute(_INSERT, _values(session_id, epoch, row)).rowcount != 1:
        raise _refusal(connection, session_id, epoch, row.first_seq)


def append_many(
    connection: sqlite3.Connection, rows: Sequence[tuple[str, int, Row]]
) -> list[StoreError | None]:
    """Write one row each of up to `MOST_TOGETHER` different sessions; returns what was wrong with which."""
    size = min(size for size in _INSERTS if size >= len(rows))
    values = [value for each in rows for value in _values(*each)]
    values += _NOBODY * (size - len(rows))
    if connection.execute(_INSERTS[size], values).rowcount == len(rows):
        return [None] * len(rows)
    return [_objection(connection, *each) for each in rows]


def _objection(connection: sqlite3.Connection, session_id: str, epoch: int, row: Row) -> StoreError | None:
    """Why this row is not there; None if it is."""
    if (
        connection.execute(_THERE, (row.first_seq, session_id, epoch, row.ts, row.data)).fetchone()
        is not None
    ):
        return None
    return _refusal(connection, session_id, epoch, row.first_seq)


def _values(session_id: str, epoch: int, row: Row) -> tuple[object, ...]:
    return (row.first_seq, row.count, row.ts, row.data, session_id, epoch, row.first_seq - 1)


def last_seq(connection: sqlite3.Connection, session_id: str) -> int:
    found = connection.execute("SELECT last_seq FROM heads WHERE id = ?", (session_id,)).fetchone()
    if found is None:
        raise unknown(session_id)
    return int(found[0])


def read(connection: sqlite3.Connection, session_id: str, after_seq: int, max_bytes: int) -> list[Row]:
    start, end = _span(connection, session_id)
    wanted = start + min(max(after_seq, 0), SEQ_MASK - 1) + 1
    rows: list[Row] = []
    size = 0
    # The row that holds the wanted event may begin before it; with none such, begin at the event itself.
    for key, ts, count, data in connection.execute(_FORWARD, (end, start, wanted, wanted)):
        row = trim(Row(key & SEQ_MASK, ts, count, data), (wanted & SEQ_MASK), SEQ_MASK)
        if row is not None:
            rows.append(row)
            size += len(row.data)
            if size >= max_bytes:
                break
    return rows


def read_before(connection: sqlite3.Connection, session_id: str, before_seq: int, limit: int) -> list[Row]:
    start, _ = _span(connection, session_id)
    before = min(max(before_seq, 0), SEQ_MASK)
    rows: list[Row] = []
    left, size = max(limit, 0), 0
    for key, ts, count, data in connection.execute(_BACKWARD, (start, start + before)):
        last = min((key & SEQ_MASK) + count, before) - 1
        if left <= 0 or size >= limits.PAGE_BACK_BYTES:
            break
        row = trim(Row(key & SEQ_MASK, ts, count, data), last - left + 1, last)
        if row is not None:
            rows.append(row)
            left -= row.count
            size += len(row.data)
    rows.reverse()
    return rows


def trim(row: Row, first: int, last: int) -> Row | None:
    """The part of a row from event `first` to event `last`, None if there is none."""
    if row.first_seq >= first and row.last_seq <= last:
        return row
    skip = max(first - row.first_seq, 0)
    events = row.events()[skip : max(last - row.first_seq + 1, 0)]
    if not events:
        return None
    return Row(row.first_seq + skip, row.ts, len(events), b"\n".join(events))


def _span(connection: sqlite3.Connection, session_id: str) -> tuple[int, int]:
    n = number(connection, session_id)
    return n << SEQ_BITS, (n + 1) << SEQ_BITS


def _refusal(connection: sqlite3.Connection, session_id: str, epoch: int, first_seq: int) -> StoreError:
    head = connection.execute("SELECT epoch, last_seq FROM heads WHERE id = ?", (session_id,)).fetchone()
    if head is None:
        return unknown(session_id)
    if head[0] != epoch:
        return fenced(session_id, head[0], epoch)
    return SequenceGap(f"Event {first_seq} of session {session_id} does not follow {head[1]}.", head[1])
