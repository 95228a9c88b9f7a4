"""The table of sessions, in SQL."""

from __future__ import annotations

import sqlite3
from typing import Any, TypeAlias

import msgspec

from dragoman.gateway.ports.store import (
    Fenced,
    Page,
    SessionChanges,
    SessionExists,
    SessionRecord,
    UnknownSession,
)
from dragoman.store import cursor as cursors
from dragoman.store import limits
from dragoman.store.schema import SEQ_BITS

_HEAD = ("id", "owner", "epoch", "first_seq", "last_seq")
_BODY = (
    "agent",
    "agent_session_id",
    "cwd",
    "workspace",
    "additional_directories",
    "sandbox",
    "title",
    "created_at",
    "updated_at",
    "state",
    "forked_from",
    "extra",
)
_JSON = ("additional_directories", "extra")

_COLUMNS = ", ".join([f"heads.{name}" for name in _HEAD] + [f"sessions.{name}" for name in _BODY])
_SELECT = f"SELECT {_COLUMNS}, n FROM sessions JOIN heads USING (n)"
_INSERT_HEAD = f"INSERT INTO heads ({', '.join(_HEAD)}) VALUES ({', '.join('?' * len(_HEAD))})"
_INSERT_BODY = f"INSERT INTO sessions (n, {', '.join(_BODY)}) VALUES (?{', ?' * len(_BODY)})"
_JSON_TYPES: dict[str, Any] = {"additional_directories": tuple[str, ...], "extra": dict[str, Any]}


def unknown(session_id: str) -> UnknownSession:
    return UnknownSession(f"Session {session_id} is not in this store: deleted, or made on another machine.")


def fenced(session_id: str, current: int, epoch: int) -> Fenced:
    return Fenced(f"Session {session_id} is owned by another process now (epoch {current}, not {epoch}).")


def number(connection: sqlite3.Connection, session_id: str) -> int:
    found = connection.execute("SELECT n FROM heads WHERE id = ?", (session_id,)).fetchone()
    if found is None:
        raise unknown(session_id)
    return int(found[0])


Columns: TypeAlias = dict[str, Any]


def record_columns(record: SessionRecord) -> Columns:
    """What a new record is stored as; in the caller's thread, so that nonsense fails where it comes from."""
    columns = {name: _store(name, getattr(record, name)) for name in _HEAD + _BODY}
    columns["last_seq"] = record.first_seq - 1
    return columns


def changed_columns(changes: SessionChanges) -> Columns:
    values = {name: getattr(changes, name) for name in changes.__struct_fields__}
    return {name: _store(name, value) for name, value in values.items() if value is not msgspec.UNSET}


def create(connection: sqlite3.Connection, columns: Columns) -> None:
    try:
        n = connection.execute(_INSERT_HEAD, [columns[name] for name in _HEAD]).lastrowid
        connection.execute(_INSERT_BODY, [n, *(columns[name] for name in _BODY)])
    except sqlite3.IntegrityError as error:
        raise _exists(columns["id"], columns["agent_session_id"]) from error


def update(connection: sqlite3.Connection, session_id: str, epoch: int, columns: Columns) -> None:
    found = connection.execute("SELECT n, epoch FROM heads WHERE id = ?", (session_id,)).fetchone()
    if found is None:
        raise unknown(session_id)
    if found[1] != epoch:
        raise fenced(session_id, found[1], epoch)
    if not columns:
        return
    assignments = ", ".join(f"{name} = ?" for name in columns)
    try:
        connection.execute(f"UPDATE sessions SET {assignments} WHERE n = ?", [*columns.values(), found[0]])
    except sqlite3.IntegrityError as error:
        raise _exists(session_id, columns.get("agent_session_id")) from error


def get(connection: sqlite3.Connection, session_id: str) -> SessionRecord | None:
    return _one(connection.execute(f"{_SELECT} WHERE heads.id = ?", (session_id,)))


def find(connection: sqlite3.Connection, agent: str, agent_session_id: str) -> SessionRecord | None:
    return _one(
        connection.execute(f"{_SELECT} WHERE agent = ? AND agent_session_id = ?", (agent, agent_session_id))
    )


def page(
    connection: sqlite3.Connection,
    store_id: str,
    *,
    cwd: str | None,
    agent: str | None,
    query: str | None,
    cursor: str | None,
    limit: int,
) -> Page:
    """One page of the list, walked along an index from the cursor's position."""
    filters = (cwd, agent, query)
    limit = max(1, min(limit, limits.LIST_LIMIT))
    where, values = _conditions(cwd, agent, query)
    if cursor is not None:
        position = cursors.decode(cursor, store_id, filters)
        where.append("(updated_at, n) < (?, ?)")
        values += [position.updated_at, position.n]
    clause = f"WHERE {' AND '.join(where)}" if where else ""
    # One more than asked tells whether there is a next page.
    rows = connection.execute(
        f"{_SELECT} {clause} ORDER BY updated_at DESC, n DESC LIMIT ?", [*values, limit + 1]
    ).fetchall()
    records = tuple(_record(row) for row in rows[:limit])
    if len(rows) <= limit:
        return Page(records, None)
    last = cursors.Position(records[-1].updated_at, rows[limit - 1][-1])
    return Page(records, cursors.encode(last, store_id, filters))


def delete(connection: sqlite3.Connection, n: int) -> None:
    connection.execute("DELETE FROM journal WHERE key >= ? AND key < ?", (n << SEQ_BITS, (n + 1) << SEQ_BITS))
    connection.execute("DELETE FROM sessions WHERE n = ?", (n,))
    connection.execute("DELETE FROM heads WHERE n = ?", (n,))


def _conditions(cwd: str | None, agent: str | None, query: str | None) -> tuple[list[str], list[Any]]:
    where: list[str] = []
    values: list[Any] = []
    for column, value in (("cwd", cwd), ("agent", agent)):
        if value is not None:
            where.append(f"{column} = ?")
            values.append(value)
    if query:
        escaped = query.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        columns = ("title", "cwd", "heads.id")
        where.append("(" + " OR ".join(f"{column} LIKE ? ESCAPE '\\'" for column in columns) + ")")
        values += [f"%{escaped}%"] * len(columns)
    return where, values


def _store(name: str, value: Any) -> Any:
    return msgspec.json.encode(value).decode() if name in _JSON else value


def _one(rows: sqlite3.Cursor) -> SessionRecord | None:
    row = rows.fetchone()
    return None if row is None else _record(row)


def _record(row: tuple[Any, ...]) -> SessionRecord:
    fields = dict(zip(_HEAD + _BODY, row, strict=False))
    for name, kind in _JSON_TYPES.items():
        fields[name] = msgspec.json.decode(fields[name], type=kind)
    return SessionRecord(**fields)


def _exists(session_id: str, agent_session_id: object) -> SessionExists:
    return SessionExists(
        f"Session {session_id} cannot be stored: that id, or the agent's own id {agent_session_id} for it, "
        "belongs to a session already."
    )
