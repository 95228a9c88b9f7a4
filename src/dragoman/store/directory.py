"""The directory: SQL queries on the table of sessions."""

from __future__ import annotations

import sqlite3
from hashlib import blake2b
from typing import Any, TypeAlias

import msgspec
from msgspec import structs

from dragoman.gateway.ports import store as port
from dragoman.gateway.ports.store import SessionRecord
from dragoman.store import limits

_COLUMNS = SessionRecord.__struct_fields__
_JSON_TYPES: dict[str, Any] = {"additional_directories": tuple[str, ...], "extra": dict[str, Any]}
_SELECT = f"SELECT {', '.join(_COLUMNS)}, n FROM directory"
_INSERT = f"INSERT INTO directory ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"

_MARK = 16
"""Characters at the end of a cursor that say which list it belongs to."""

Columns: TypeAlias = dict[str, Any]
Filters: TypeAlias = tuple[str | None, str | None, str | None]
"""Folder, agent, and a text to search for."""
Position: TypeAlias = tuple[str, int]
"""The last session of a page: its `updated_at` and its row number."""


def unknown(session_id: str) -> port.UnknownSession:
    text = f"Session {session_id} is not in this store: deleted, or made on another machine."
    return port.UnknownSession(text)


def fenced(session_id: str, epoch: int) -> port.Fenced:
    text = f"Session {session_id} is owned by another process now (its lease of epoch {epoch} is over)."
    return port.Fenced(text)


def exists(session_id: str, agent_session_id: object) -> port.SessionExists:
    ids = f"that id, or the agent's own id {agent_session_id} for it,"
    return port.SessionExists(f"Session {session_id} cannot be stored: {ids} belongs to a session already.")


def columns(source: SessionRecord | port.SessionChanges) -> Columns:
    """The column values of a record or of changes; encoded in the caller's thread, so bad values fail there."""
    values = {name: value for name, value in structs.asdict(source).items() if value is not msgspec.UNSET}
    return values | {name: msgspec.json.encode(values[name]).decode() for name in _JSON_TYPES & values.keys()}


def create(connection: sqlite3.Connection, columns: Columns) -> None:
    try:
        connection.execute(_INSERT, [columns[name] for name in _COLUMNS])
    except sqlite3.IntegrityError as error:
        raise exists(columns["id"], columns["agent_session_id"]) from error


def update(connection: sqlite3.Connection, session_id: str, epoch: int, columns: Columns) -> None:
    """Change a record whose epoch is still the same."""
    found = connection.execute("SELECT epoch FROM directory WHERE id = ?", (session_id,)).fetchone()
    if found is None:
        raise unknown(session_id)
    if found[0] != epoch:
        raise fenced(session_id, epoch)
    change(connection, session_id, columns)


def change(connection: sqlite3.Connection, session_id: str, columns: Columns) -> None:
    if not columns:
        return
    assignments = ", ".join(f"{name} = ?" for name in columns)
    query = f"UPDATE directory SET {assignments} WHERE id = ?"
    try:
        changed = connection.execute(query, [*columns.values(), session_id]).rowcount
    except sqlite3.IntegrityError as error:
        raise exists(session_id, columns.get("agent_session_id")) from error
    if not changed:
        raise unknown(session_id)


def delete(connection: sqlite3.Connection, session_id: str) -> bool:
    return connection.execute("DELETE FROM directory WHERE id = ?", (session_id,)).rowcount > 0


def get(connection: sqlite3.Connection, session_id: str) -> SessionRecord | None:
    return _record(connection.execute(f"{_SELECT} WHERE id = ?", (session_id,)).fetchone())


def find(connection: sqlite3.Connection, agent: str, agent_session_id: str) -> SessionRecord | None:
    query = f"{_SELECT} WHERE agent = ? AND agent_session_id = ?"
    return _record(connection.execute(query, (agent, agent_session_id)).fetchone())


def page(
    connection: sqlite3.Connection, store_id: str, filters: Filters, cursor: str | None, limit: int
) -> port.Page:
    """One page of the list, walked along an index from the cursor's position."""
    limit = max(1, min(limit, limits.LIST_LIMIT))
    where: list[str] = []
    values: list[Any] = []
    for column, value in zip(("cwd", "agent"), filters, strict=False):
        if value is not None:
            where.append(f"{column} = ?")
            values.append(value)
    if filters[2]:
        escaped = filters[2].replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        where.append("(" + " OR ".join(f"{each} LIKE ? ESCAPE '\\'" for each in ("title", "cwd", "id")) + ")")
        values += [f"%{escaped}%"] * 3
    if cursor is not None:
        where.append("(updated_at, n) < (?, ?)")
        values += unseal(cursor, store_id, filters)
    clause = f"WHERE {' AND '.join(where)}" if where else ""
    query = f"{_SELECT} {clause} ORDER BY updated_at DESC, n DESC LIMIT ?"
    rows = connection.execute(query, [*values, limit + 1]).fetchall()  # one more shows a next page
    records = tuple(filter(None, map(_record, rows[:limit])))
    last = (records[-1].updated_at, rows[limit - 1][-1]) if len(rows) > limit else None
    return port.Page(records, seal(last, store_id, filters) if last is not None else None)


def seal(position: Position, store_id: str, filters: Filters) -> str:
    """A cursor that is only valid for this store and these filters."""
    body = msgspec.json.encode(position).hex()
    return body + _mark(body, store_id, filters)


def unseal(cursor: str, store_id: str, filters: Filters) -> Position:
    body, mark = cursor[:-_MARK], cursor[-_MARK:]
    if mark != _mark(body, store_id, filters):
        text = (
            "The cursor is not from this list. Start again without one, and keep the filters between pages."
        )
        raise port.BadCursor(text)
    return msgspec.json.decode(bytes.fromhex(body), type=tuple[str, int])


def _mark(body: str, store_id: str, filters: Filters) -> str:
    sealed = msgspec.json.encode((store_id, filters)) + body.encode(errors="replace")
    return blake2b(sealed, digest_size=_MARK // 2).hexdigest()


def untouched(connection: sqlite3.Connection, since: str | None) -> list[tuple[str, str]]:
    """Ids and times of sessions last updated before `since`, oldest first; all sessions if None."""
    query = "SELECT id, updated_at FROM directory WHERE ?1 IS NULL OR updated_at < ?1 ORDER BY updated_at, n"
    return connection.execute(query, (since,)).fetchall()


def store_id(connection: sqlite3.Connection) -> str:
    return str(connection.execute("SELECT store_id FROM identity").fetchone()[0])


def _record(row: tuple[Any, ...] | None) -> SessionRecord | None:
    if row is None:
        return None
    fields = dict(zip(_COLUMNS, row, strict=False))
    for name, kind in _JSON_TYPES.items():
        fields[name] = msgspec.json.decode(fields[name], type=kind)
    return SessionRecord(**fields)
