"""The store in one SQLite file, shared by the processes of one machine."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from dragoman.gateway.ports.store import (
    Done,
    HeldElsewhere,
    Lease,
    Page,
    Removed,
    Row,
    SessionChanges,
    SessionRecord,
    StoreClosed,
    StoreError,
    StoreReadOnly,
    Usage,
)
from dragoman.store import directory, journal, leases, limits, retention
from dragoman.store.backlog import Backlog
from dragoman.store.checkpointer import Checkpointer
from dragoman.store.database import Database, Sync
from dragoman.store.failure import explain
from dragoman.store.operations import Append, Operation, Task, Update
from dragoman.store.owners import Owner, sweep
from dragoman.store.readers import Readers
from dragoman.store.writer import Writer

T = TypeVar("T")
Mode: TypeAlias = Literal["rw", "ro"]
Events: TypeAlias = list[bytes]  # within the class, `list` is the method
Rows: TypeAlias = list[Row]


class SqliteStore:
    """Implements `dragoman.gateway.ports.store.Store`. Make one with `open`."""

    def __init__(self, database: Database, readers: Readers, store_id: str, owner: Owner | None) -> None:
        self.owner_id = owner.id if owner is not None else ""
        self.socket_path = str(owner.socket_path) if owner is not None else ""
        self.writable = owner is not None
        self._database = database
        self._readers = readers
        self._store_id = store_id
        self._locks = database.locks
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._backlog = Backlog()
        self._settled: deque[Operation] = deque()
        self._writer: Writer | None = None
        self._closed = False

    @classmethod
    async def open(
        cls,
        path: Path,
        runtime: Path,
        *,
        mode: Mode = "rw",
        sync: Sync = "normal",
        busy_seconds: float = limits.BUSY_SECONDS,
    ) -> SqliteStore:
        """Open the file at `path`, making it if there is none; its lock goes beside the file, its socket into `runtime`.

        With `mode="ro"` nothing is made or changed and every write is refused with `StoreReadOnly`.
        """
        database = Database(path, sync=sync, busy_seconds=busy_seconds)
        readers = Readers(database)
        try:
            if mode == "ro":
                await readers.call(database.prepare_reading)
                return cls(database, readers, await readers.query(_identity), None)
            connection, owner, store_id = await readers.call(lambda: _open_for_writing(database, runtime))
        except BaseException:
            readers.close()
            raise
        store = cls(database, readers, store_id, owner)
        store._writer = Writer(connection, path, store._deliver, Checkpointer(database))
        return store

    # -- journal ---------------------------------------------------------------------------------------------

    @property
    def backlog(self) -> int:
        return self._backlog.bytes

    @property
    def congested(self) -> bool:
        return self._backlog.congested

    @property
    def on_drained(self) -> Callable[[], None] | None:
        return self._backlog.on_drained

    @on_drained.setter
    def on_drained(self, hook: Callable[[], None] | None) -> None:
        self._backlog.on_drained = hook

    def append(self, session_id: str, epoch: int, first_seq: int, events: Events, done: Done) -> None:
        size = sum(map(len, events)) + len(events) * limits.EVENT_OVERHEAD
        self._put(Append(session_id, epoch, first_seq, events, size, time.time_ns() // 1_000_000, done))

    async def read(self, session_id: str, after_seq: int, max_bytes: int) -> Rows:
        return await self._readers.query(lambda c: journal.read(c, session_id, after_seq, max_bytes))

    async def read_before(self, session_id: str, before_seq: int, limit: int) -> Rows:
        return await self._readers.query(lambda c: journal.read_before(c, session_id, before_seq, limit))

    async def last_seq(self, session_id: str) -> int:
        return await self._readers.query(lambda c: journal.last_seq(c, session_id))

    # -- directory -------------------------------------------------------------------------------------------

    async def create(self, record: SessionRecord) -> None:
        columns = directory.record_columns(record)
        await self._write(lambda c: directory.create(c, columns))

    def update(self, session_id: str, epoch: int, changes: SessionChanges, done: Done | None = None) -> None:
        self._put(Update(session_id, epoch, directory.changed_columns(changes), done))

    async def get(self, session_id: str) -> SessionRecord | None:
        return await self._readers.query(lambda c: directory.get(c, session_id))

    async def find(self, agent: str, agent_session_id: str) -> SessionRecord | None:
        return await self._readers.query(lambda c: directory.find(c, agent, agent_session_id))

    async def list(
        self,
        *,
        cwd: str | None = None,
        agent: str | None = None,
        query: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page:
        read = partial(directory.page, cwd=cwd, agent=agent, query=query, cursor=cursor, limit=limit)
        return await self._readers.query(lambda c: read(c, self._store_id))

    async def delete(self, session_id: str) -> bool:
        return await self._write(lambda c: leases.delete(c, session_id, self.owner_id, self._locks))

    # -- leases ----------------------------------------------------------------------------------------------

    async def acquire(self, session_id: str) -> Lease | HeldElsewhere:
        return await self._write(lambda c: leases.acquire(c, session_id, self.owner_id, self._locks))

    async def release(self, session_id: str, epoch: int) -> None:
        await self._write(lambda c: leases.release(c, session_id, epoch, self.owner_id))

    async def owners(self) -> tuple[HeldElsewhere, ...]:
        return await self._readers.query(lambda c: leases.alive(c, self._locks))

    # -- retention -------------------------------------------------------------------------------------------

    async def expire(self, older_than: str) -> tuple[Removed, ...]:
        victims = await self._readers.query(lambda c: retention.expired(c, older_than))
        removed = [await self._remove(victim, keep_record=False) for victim in victims]
        return await self._shrunk(removed)

    async def prune(
        self, *, max_bytes: int | None = None, older_than: str | None = None
    ) -> tuple[Removed, ...]:
        total = (await self._readers.query(retention.totals))[1]
        removed = []
        for victim, size, too_old in await self._readers.query(lambda c: retention.prunable(c, older_than)):
            if too_old or (max_bytes is not None and total > max_bytes):
                gone = await self._remove(victim, keep_record=True)
                total -= size if gone is not None else 0
                removed.append(gone)
        return await self._shrunk(removed)

    async def usage(self) -> Usage:
        sessions, journal_bytes = await self._readers.query(retention.totals)
        return Usage(sessions, journal_bytes, await self._readers.call(self._database.disk_bytes))

    async def _remove(self, session_id: str, *, keep_record: bool) -> Removed | None:
        return await self._write(
            lambda c: retention.remove(c, session_id, self._locks, keep_record=keep_record)
        )

    async def _shrunk(self, removed: Sequence[Removed | None]) -> tuple[Removed, ...]:
        gone = tuple(one for one in removed if one is not None)
        more = bool(gone)
        while more:
            more = await self._write(retention.shrink)
        return gone

    # -- the queue -------------------------------------------------------------------------------------------

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._readers.close()
        if self._writer is not None and self._owner is not None:
            owner = self._owner
            farewell = self._loop.create_future()
            self._writer.put(Task(lambda c: leases.unregister(c, owner), farewell))
            ended = asyncio.Event()
            self._writer.finish(lambda: self._call_in_loop(ended.set))
            await ended.wait()
            # On a full disk it fails, and a lock that no process holds says the same.
            owner.retire(unregistered=farewell.exception() is None)

    async def _write(self, run: Callable[[sqlite3.Connection], T]) -> T:
        future: asyncio.Future[T] = self._loop.create_future()
        self._put(Task(run, future))
        return await future

    def _put(self, operation: Operation) -> None:
        self._backlog.add(operation.size)
        if self._writer is not None and not self._closed:
            self._writer.put(operation)
            return
        operation.error = self._refusal()
        self._settled.append(operation)
        self._loop.call_soon(self._settle)

    def _refusal(self) -> StoreError:
        if self._closed:
            return StoreClosed(f"The store {self._database.path} is closed.")
        return StoreReadOnly(f"{self._database.path} is open for reading only; nothing new is stored.")

    def _deliver(self, operations: Sequence[Operation]) -> None:
        self._settled.extend(operations)
        self._call_in_loop(self._settle)

    def _call_in_loop(self, callback: Callable[[], object]) -> None:
        if not self._loop.is_closed():  # nobody is left to be told
            self._loop.call_soon_threadsafe(callback)

    def _settle(self) -> None:
        """Tell whoever waits. If one of them raises, the loop reports it and the rest are told next."""
        settled = self._settled
        try:
            while settled:
                operation = settled.popleft()
                self._backlog.remove(operation.size)
                operation.settle()
        finally:
            if settled:
                self._loop.call_soon(self._settle)
            self._backlog.tell()


def _identity(connection: sqlite3.Connection) -> str:
    return str(connection.execute("SELECT store_id FROM identity").fetchone()[0])


def _open_for_writing(database: Database, runtime: Path) -> tuple[sqlite3.Connection, Owner, str]:
    connection = database.prepare()
    owner = None
    try:
        owner = Owner.claim(database.locks, runtime)
        connection.execute("BEGIN IMMEDIATE")
        dead = leases.register(connection, owner, database.locks)
        connection.execute("COMMIT")
        sweep(database.locks, runtime, dead)
        return connection, owner, _identity(connection)
    except (sqlite3.Error, OSError, StoreError) as error:
        connection.close()
        if owner is not None:
            owner.retire(unregistered=True)
        raise explain(error, database.path) from error
