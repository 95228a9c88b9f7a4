"""The directory: SQL queries on the table of sessions, and the thread that writes to it in order.

Neither the event loop nor a reader waits for a write.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import structs

from dragoman.atomic_file import replace_file
from dragoman.gateway.ports import store as port
from dragoman.gateway.ports.store import SessionRecord
from dragoman.store import limits
from dragoman.store.failure import explained
from dragoman.store.locks import DESCRIPTION, Folder

T = TypeVar("T")

_COLUMNS = SessionRecord.__struct_fields__
_JSON_TYPES: dict[str, Any] = {"additional_directories": tuple[str, ...], "extra": dict[str, Any]}
_SELECT = f"SELECT {', '.join(_COLUMNS)}, n FROM directory"
_INSERT = f"INSERT INTO directory ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"

_MARK = 16
"""Characters at the end of a cursor that say which list it belongs to."""

Columns: TypeAlias = dict[str, Any]
Filters: TypeAlias = tuple[str | None, str | None, str | None]
"""Folder, agent, and a text to search for."""


def unknown(session_id: str) -> port.UnknownSession:
    text = f"Session {session_id} is not in this store: deleted, or made on another machine."
    return port.UnknownSession(text)


def fenced(session_id: str, epoch: int | None) -> port.Fenced:
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


def change(
    connection: sqlite3.Connection, session_id: str, columns: Columns, epoch: int | None = None
) -> None:
    """Change a record; if `epoch` is given, only while that is its epoch."""
    found = connection.execute("SELECT epoch FROM directory WHERE id = ?", (session_id,)).fetchone()
    if found is None:
        raise unknown(session_id)
    if epoch not in (None, found[0]):
        raise fenced(session_id, epoch)
    if not columns:
        return
    assignments = ", ".join(f"{name} = ?" for name in columns)
    query = f"UPDATE directory SET {assignments} WHERE id = ?"
    try:
        connection.execute(query, [*columns.values(), session_id])
    except sqlite3.IntegrityError as error:
        raise exists(session_id, columns.get("agent_session_id")) from error


def describe(connection: sqlite3.Connection, folder: Folder, session_id: str) -> None:
    """Write the session's row to a file beside its journal, if it has one."""
    record = get(connection, session_id)
    if record is not None and folder.of(session_id).exists():
        text = msgspec.json.format(msgspec.json.encode(columns(record)), indent=1)
        replace_file(folder.of(session_id) / DESCRIPTION, text + b"\n")


def delete(connection: sqlite3.Connection, session_id: str) -> bool:
    return connection.execute("DELETE FROM directory WHERE id = ?", (session_id,)).rowcount > 0


def get(connection: sqlite3.Connection, session_id: str) -> SessionRecord | None:
    return _record(connection.execute(f"{_SELECT} WHERE id = ?", (session_id,)).fetchone())


def find(connection: sqlite3.Connection, agent: str, agent_session_id: str) -> SessionRecord | None:
    query = f"{_SELECT} WHERE agent = ? AND agent_session_id = ?"
    return _record(connection.execute(query, (agent, agent_session_id)).fetchone())


def page(connection: sqlite3.Connection, filters: Filters, cursor: str | None, limit: int) -> port.Page:
    """One page of the list, walked along an index from the cursor's position."""
    store_id = str(connection.execute("SELECT store_id FROM identity").fetchone()[0])
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
    if len(rows) <= limit:
        return port.Page(records, None)
    body = msgspec.json.encode((records[-1].updated_at, rows[limit - 1][-1])).hex()
    return port.Page(records, body + _mark(body, store_id, filters))


def unseal(cursor: str, store_id: str, filters: Filters) -> tuple[str, int]:
    """The last session of the page before, by `updated_at` and row number, if the cursor is of this very list."""
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


def _record(row: tuple[Any, ...] | None) -> SessionRecord | None:
    if row is None:
        return None
    fields = dict(zip(_COLUMNS, row, strict=False))
    for name, kind in _JSON_TYPES.items():
        fields[name] = msgspec.json.decode(fields[name], type=kind)
    return SessionRecord(**fields)


class Threads(ThreadPoolExecutor):
    """Runs blocking work; SQLite and OS errors become the port's errors."""

    def __init__(self, path: Path, count: int) -> None:
        super().__init__(count, thread_name_prefix="dragoman-store")
        self._path = path
        self._loop = asyncio.get_running_loop()

    def call(self, work: Callable[[], T]) -> asyncio.Future[T]:
        def perform() -> T:
            with explained(self._path):
                return work()

        try:
            return self._loop.run_in_executor(self, perform)
        except RuntimeError as error:  # after `shutdown`
            raise port.StoreClosed(f"The store {self._path} is closed.") from error


class DirectoryWriter(Threads):
    """Writes to the directory with one connection in one thread."""

    def __init__(self, path: Path, folder: Folder) -> None:
        super().__init__(path, 1)
        self.connection: sqlite3.Connection | None = None
        """Must be set before the first `run`."""
        self._folder = folder
        self._held: dict[object, Callable[[], object]] = {}
        """Writes held back for up to a second, of a session by its id, so that a turn costs no write."""
        self._last: asyncio.Future[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def run(self, work: Callable[[sqlite3.Connection], T]) -> asyncio.Future[T]:
        """Run `work` in a transaction."""

        def transact() -> T:
            assert self.connection is not None
            with self.connection as connection:
                connection.execute("BEGIN IMMEDIATE")
                return work(connection)

        self._last = running = self.call(transact)
        return running

    def update(
        self, session_id: str, epoch: int, columns: Columns, done: port.Done, *, describes: bool
    ) -> None:
        """Change a record, and with `describes` its description, after all earlier changes of its session."""
        self._held.pop(session_id, lambda: None)()
        self._write(session_id, epoch, columns, done, describes=describes)

    def soon(self, key: object, write: Callable[[], object]) -> None:
        """Call `write` within a second; of several calls with the same key only the last counts."""
        self._held[key] = write
        if self._timer is None:
            self._collect()

    def flush(self) -> None:
        """Begin all writes that are held back."""
        held, self._held = self._held, {}
        for write in held.values():
            write()

    def _collect(self) -> None:
        """Begin the first write at once, and those of the following second together."""
        busy = bool(self._held)
        self._timer = self._loop.call_later(limits.DIRECTORY_SECONDS, self._collect) if busy else None
        self.flush()

    async def written(self) -> None:
        """Wait until every change is in the directory or was refused, for `DIRECTORY_SECONDS` at most.

        A directory that another process keeps locked can still be read without the changes.
        """
        self.flush()
        if self._last is not None and not self._last.done():
            await asyncio.wait([self._last], timeout=limits.DIRECTORY_SECONDS)

    def _write(
        self, session_id: str, epoch: int, columns: Columns, done: port.Done, *, describes: bool
    ) -> None:
        def work(connection: sqlite3.Connection) -> None:
            change(connection, session_id, columns, epoch)
            if describes:
                describe(connection, self._folder, session_id)

        def ended(working: asyncio.Future[None]) -> None:
            error = working.exception()
            if error is not None and not isinstance(error, port.StoreError):
                raise error
            done(error)

        self.run(work).add_done_callback(ended)
