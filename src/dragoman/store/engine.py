"""The file store: one folder, shared by the processes of one machine (`docs/explanation/store.md`)."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from msgspec import structs

from dragoman.atomic_file import sync_folder
from dragoman.gateway.ports import store as port
from dragoman.search.index import forget
from dragoman.store import directory, limits, locks, segments
from dragoman.store.database import Database, Sync
from dragoman.store.directory import Columns
from dragoman.store.leases import Leases
from dragoman.wire import timestamps

T = TypeVar("T")
Events: TypeAlias = list[bytes]  # within the class, `list` is the method
Rows: TypeAlias = list[port.Row]
Stored: TypeAlias = list[port.StoredSession]


class FileStore(Leases):
    """Implements `dragoman.gateway.ports.store.Store`; created with `open`."""

    @classmethod
    async def open(
        cls,
        path: Path,
        runtime: Path,
        *,
        mode: Literal["rw", "ro"] = "rw",
        sync: Sync = "normal",
        busy_seconds: float = limits.BUSY_SECONDS,
    ) -> FileStore:
        """Open the store whose directory is at `path`, creating it if missing; its socket goes into `runtime`.

        With `mode="ro"` nothing is created or changed, and every write is refused with `StoreReadOnly`.
        """
        database = Database(path, sync=sync, busy_seconds=busy_seconds)
        store = cls(database, runtime, writable=mode == "rw")
        await asyncio.to_thread(store.prepare)
        return store

    @property
    def backlog(self) -> int:
        return self._disk.backlog

    def append(self, session_id: str, epoch: int, first_seq: int, events: Events, done: port.Done) -> None:
        owned = self._owned.get(session_id)
        if owned is None or owned.epoch != epoch or self._closed:
            done(self._refusal() or directory.fenced(session_id, epoch))
        elif not events:
            done(None)
        elif not owned.append(first_seq, events, done):
            done(self._lose(session_id, epoch))

    async def read(self, session_id: str, after_seq: int, max_bytes: int) -> Rows:
        look = partial(self._reader.read, after_seq=after_seq, max_bytes=max_bytes)
        rows = await self._look(session_id, look)
        if rows or session_id in self._owned:
            return rows
        record = await self._known(session_id)
        rows = await self._look(session_id, look)  # again: includes all events that the record counts
        return rows or _lost_end(record, after_seq, record.last_seq)

    async def read_before(self, session_id: str, before_seq: int, limit: int) -> Rows:
        look = partial(self._reader.read_before, before_seq=before_seq, limit=limit)
        rows = await self._look(session_id, look)
        if session_id in self._owned or (rows and rows[-1].last_seq == before_seq - 1):
            return rows
        record = await self._known(session_id)
        rows = await self._look(session_id, look)
        behind = rows[-1].last_seq if rows else 0
        return rows + _lost_end(record, behind, min(record.last_seq, before_seq - 1))

    async def last_seq(self, session_id: str) -> int:
        return (await self._known(session_id)).last_seq

    async def common_seq(self, session_id: str, epoch: int, seq: int) -> int:
        found = await self._look(session_id, segments.segments)
        return min([seq, *(segment.first_seq - 1 for segment in found if segment.broken > epoch)])

    async def _look(self, session_id: str, look: Callable[[Path], T]) -> T:
        folder = self._folder.of(session_id)

        def work() -> T:
            for segment in segments.segments(folder)[-1:] if self._disk.durable else ():
                sync_folder(segment.path)  # the owner may not have flushed yet, and shown events must survive
            return look(folder)

        return await self._threads.call(work)

    async def create(self, record: port.SessionRecord) -> None:
        self._check_writable()
        record = structs.replace(record, node=self.owner.node, last_seq=record.first_seq - 1)
        row = directory.columns(record)

        def add(connection: sqlite3.Connection, columns: Columns) -> None:
            directory.create(connection, row | columns)
            directory.describe(connection, self._folder, record.id)

        if record.owner != self.owner.id:
            await self._writer.run(lambda c: add(c, {}))
            return
        try:
            await self._own(structs.replace(record, owner=None, epoch=record.epoch - 1), add)
        except port.SessionHeld as held:
            raise directory.exists(record.id, record.agent_session_id) from held

    def update(
        self, session_id: str, epoch: int, changes: port.SessionChanges, done: port.Done | None = None
    ) -> None:
        if (refusal := self._refusal()) is None:
            columns = directory.columns(changes)
            self._change(session_id, epoch, columns, done or (lambda error: None), describes=True)
        elif done is not None:
            done(refusal)

    def touch(self, session_id: str, epoch: int, state: str, done: port.Done) -> None:
        if (refusal := self._refusal()) is not None:
            done(refusal)
        else:
            touched = partial(self._touch, session_id, epoch, state, time.time_ns(), done)
            self._writer.soon(session_id, touched)

    def _touch(self, session_id: str, epoch: int, state: str, moment: int, done: port.Done) -> None:
        columns = {"state": state, "updated_at": timestamps.timestamp(moment // 1_000_000)}
        self._change(session_id, epoch, columns, done, describes=False)

    def _change(
        self, session_id: str, epoch: int, columns: Columns, done: port.Done, *, describes: bool
    ) -> None:
        owned = self._owned.get(session_id)
        if owned is not None:
            columns["last_seq"] = owned.writer.last_seq
        self._writer.update(session_id, epoch, columns, done, describes=describes)

    async def find(self, agent: str, agent_session_id: str) -> port.SessionRecord | None:
        return await self._query(lambda c: directory.find(c, agent, agent_session_id))

    async def list(
        self,
        *,
        cwd: str | None = None,
        agent: str | None = None,
        query: str | None = None,
        cursor: str | None = None,
        limit: int = port.LIST_PAGE,
    ) -> port.Page:
        filters = (cwd, agent, query)
        return await self._query(lambda c: directory.page(c, filters, cursor, limit))

    async def delete(self, session_id: str) -> bool:
        self._check_writable()

        def delete(connection: sqlite3.Connection) -> tuple[Path, bool]:
            return self._folder.hide(session_id), directory.delete(connection, session_id)

        await self._give_back(session_id)
        with closing(await self._threads.call(lambda: locks.take(self._folder.of(session_id), make=True))):
            hidden, found = await self._writer.run(delete)
            await self._threads.call(lambda: shutil.rmtree(hidden, ignore_errors=True))
            await self._threads.call(lambda: forget(self._folder.root, session_id))
        return found

    async def stored(self, older_than: str | None = None) -> Stored:
        known = await self._query(lambda c: directory.untouched(c, older_than))

        def size_of(session_id: str) -> int:
            with suppress(OSError):
                files = self._folder.of(session_id).glob(f"*{segments.SUFFIX}")
                return sum(path.stat().st_size for path in files)
            return 0

        return await self._threads.call(lambda: [port.StoredSession(*row, size_of(row[0])) for row in known])

    async def empty(self, session_id: str) -> bool:
        self._check_writable()
        if session_id in self._owned:
            return False
        with closing(await self._threads.call(lambda: locks.take(self._folder.of(session_id), make=True))):
            record = await self._known(session_id)
            if record.last_seq < record.first_seq:
                return False
            numbers = {"first_seq": record.last_seq + 1, "last_seq": record.last_seq}
            await self._threads.call(lambda: segments.empty(self._folder.of(session_id), record))
            await self._writer.run(lambda c: directory.change(c, session_id, numbers))
            await self._threads.call(lambda: forget(self._folder.root, session_id, numbers["first_seq"]))
        return True


def _lost_end(record: port.SessionRecord, after_seq: int, last_seq: int) -> Rows:
    """A lost row for events that the directory counts and that are missing at the end of the files."""
    first_seq = max(after_seq + 1, record.first_seq)
    return [port.Row.lost(first_seq, last_seq)] if first_seq <= last_seq else []
