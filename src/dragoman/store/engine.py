"""The store in one folder, shared by the processes of one machine (`docs/explanation/store.md`)."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from msgspec import structs

from dragoman import machine
from dragoman.gateway.ports import store as port
from dragoman.store import directory, limits, schema, segments
from dragoman.store.connections import DirectoryWriter, Threads
from dragoman.store.database import Database, Sync
from dragoman.store.failure import explained
from dragoman.store.folder import Folder, sweep_sockets
from dragoman.store.leases import Leases
from dragoman.store.owned import Disk
from dragoman.store.writer import sync_folder

T = TypeVar("T")
Mode: TypeAlias = Literal["rw", "ro"]
Events: TypeAlias = list[bytes]  # within the class, `list` is the method
Rows: TypeAlias = list[port.Row]
Stored: TypeAlias = list[port.StoredSession]


class FileStore:
    """Implements `dragoman.gateway.ports.store.Store`. Make one with `open`."""

    def __init__(self, database: Database, runtime: Path, *, writable: bool) -> None:
        """Only what blocks is left to `_prepare`."""
        self.writable = writable
        self.has_old_sessions = False
        """Older versions left sessions in the database that are not converted yet (`dragoman.upkeep.conversion`)."""
        self.on_lost: port.Lost | None = None
        owner_id = f"{os.getpid()}-{os.urandom(6).hex()}"
        self._socket = runtime.absolute() / "owners" / f"{owner_id}.sock"
        address = (machine.node(), owner_id, f"unix:{self._socket}")
        self.owner = port.Owner(*address if writable else ("", "", ""))
        self._database = database
        self._folder = Folder(database.path.absolute().parent)
        self._threads = Threads(database.path, limits.READERS)
        self._writer = DirectoryWriter(database.path, self._folder)
        self._reader = segments.Reader()
        self._disk = Disk(durable=database.sync == "full")
        self._leases = Leases(self.owner, self._folder, self._threads, self._writer, self._disk)
        self._in_use = -1
        self._store_id = ""
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
    ) -> FileStore:
        """Open the store whose directory is at `path`, making it if there is none; its socket goes into `runtime`.

        With `mode="ro"` nothing is made or changed and every write is refused with `StoreReadOnly`.
        """
        database = Database(path, sync=sync, busy_seconds=busy_seconds)
        store = cls(database, runtime, writable=mode == "rw")
        await asyncio.to_thread(store._prepare)
        return store

    def _prepare(self) -> None:
        """The lock of the processes that may write comes first: without locks SQLite would fail, and not say why."""
        with explained(self._database.path), ExitStack() as failing:
            if self.writable:
                self._folder.root.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._database.check_writable()
                self._in_use = self._folder.use()
                failing.callback(os.close, self._in_use)
                connection = failing.enter_context(closing(self._database.prepare()))
                self._socket.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._folder.journals.mkdir(exist_ok=True, mode=0o700)
                for session_id in self._folder.hidden():
                    directory.delete(connection, session_id)
                    self._folder.remove_hidden(session_id)
                sweep_sockets(self._socket.parent)
                self._writer.connection = connection
            else:
                self._database.prepare_reading()
            with closing(self._database.reader()) as reader:
                self._store_id = directory.store_id(reader)
                self.has_old_sessions = schema.has_old_tables(reader)
            failing.pop_all()

    @property
    def backlog(self) -> int:
        return self._disk.backlog

    def append(self, session_id: str, epoch: int, first_seq: int, events: Events, done: port.Done) -> None:
        owned = self._leases.owned.get(session_id)
        if owned is None or owned.epoch != epoch or self._closed:
            done(self._refusal() or directory.fenced(session_id, epoch))
        elif not events:
            done(None)
        elif not owned.append(first_seq, events, done):
            done(self._lose(session_id, epoch))

    async def read(self, session_id: str, after_seq: int, max_bytes: int) -> Rows:
        look = partial(self._reader.read, after_seq=after_seq, max_bytes=max_bytes)
        rows = await self._look(session_id, look)
        if rows or session_id in self._leases.owned:
            return rows
        record = await self._known(session_id)
        rows = await self._look(session_id, look)  # with all that was there when the directory was asked
        return rows or _lost_end(record, after_seq, record.last_seq)

    async def read_before(self, session_id: str, before_seq: int, limit: int) -> Rows:
        look = partial(self._reader.read_before, before_seq=before_seq, limit=limit)
        rows = await self._look(session_id, look)
        if session_id in self._leases.owned or (rows and rows[-1].last_seq == before_seq - 1):
            return rows
        record = await self._known(session_id)
        rows = await self._look(session_id, look)
        behind = rows[-1].last_seq if rows else 0
        return rows + _lost_end(record, behind, min(record.last_seq, before_seq - 1))

    async def last_seq(self, session_id: str) -> int:
        return (await self._known(session_id)).last_seq

    async def common_seq(self, session_id: str, epoch: int, seq: int) -> int:
        return await self._look(session_id, partial(segments.common_seq, epoch=epoch, seq=seq))

    async def _look(self, session_id: str, look: Callable[[Path], T]) -> T:
        folder = self._folder.of(session_id)

        def work() -> T:
            for segment in segments.segments(folder)[-1:] if self._disk.durable else ():
                sync_folder(segment.path)  # its owner may not have done so yet, and what is shown must last
            return look(folder)

        return await self._threads.call(work)

    async def create(self, record: port.SessionRecord) -> None:
        self._check_writable()
        record = structs.replace(record, node=self.owner.node, last_seq=record.first_seq - 1)
        columns = directory.columns(record)
        ours = record.owner == self.owner.id
        if ours:
            await self._leases.begin(record)

        def add(connection: sqlite3.Connection) -> None:
            directory.create(connection, columns)
            if ours:
                self._folder.describe(record.id, columns)

        try:
            await self._writer.run(add)
        except BaseException:
            if ours:
                await self._leases.undo(record.id)
            raise

    def update(
        self, session_id: str, epoch: int, changes: port.SessionChanges, done: port.Done | None = None
    ) -> None:
        columns = directory.columns(changes)
        owned = self._leases.owned.get(session_id)
        if owned is not None:
            columns["last_seq"] = owned.writer.last_seq
        refusal = self._refusal()
        if refusal is None:
            self._writer.update(session_id, epoch, columns, done)
        elif done is not None:
            done(refusal)

    def touch(self, session_id: str, epoch: int, state: str, done: port.Done) -> None:
        owned = self._leases.owned.get(session_id)
        if owned is None or owned.epoch != epoch or self._closed:
            self.update(session_id, epoch, port.SessionChanges(state=state), done)
        else:
            self._writer.touch(session_id, owned.writer, state, done)

    async def get(self, session_id: str) -> port.SessionRecord | None:
        record = await self._query(lambda c: directory.get(c, session_id))
        if record is None:
            return None
        owned = self._leases.owned.get(session_id)
        if owned is not None:
            return structs.replace(record, last_seq=owned.writer.last_seq)
        end = await self._threads.call(lambda: self._reader.end(self._folder.of(session_id)))
        first_seq = end.first_seq if end.segment is not None else record.first_seq
        return structs.replace(record, first_seq=first_seq, last_seq=max(end.last_seq, record.last_seq))

    async def _known(self, session_id: str) -> port.SessionRecord:
        record = await self.get(session_id)
        if record is None:
            raise directory.unknown(session_id)
        return record

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
        return await self._query(lambda c: directory.page(c, self._store_id, filters, cursor, limit))

    async def delete(self, session_id: str) -> bool:
        self._check_writable()

        def delete(connection: sqlite3.Connection) -> bool:
            self._folder.hide(session_id)
            return directory.delete(connection, session_id)

        await self._give_back(session_id)
        async with self._leases.seized(session_id):
            found = await self._writer.run(delete)
            await self._threads.call(lambda: self._folder.remove_hidden(session_id))
        return found

    async def acquire(self, session_id: str, *, force: bool = False) -> port.Lease | port.HeldElsewhere:
        self._check_writable()
        await self._give_back(session_id)
        return await self._leases.acquire(await self._known(session_id), force=force)

    async def renew(self) -> None:
        owned = dict(self._leases.owned)
        lost = await self._threads.call(lambda: [name for name, each in owned.items() if not each.is_ours()])
        for session_id in lost:
            if self._leases.owned.get(session_id) is owned[session_id]:
                self._lose(session_id, owned[session_id].epoch)

    def _lose(self, session_id: str, epoch: int) -> port.Fenced:
        error = directory.fenced(session_id, epoch)
        if self.on_lost is not None:
            self.on_lost(session_id, error)
        return error

    async def release(self, session_id: str, epoch: int) -> None:
        owned = self._leases.owned.get(session_id)
        if owned is not None and owned.epoch == epoch:
            await self._give_back(session_id)

    async def _give_back(self, *session_ids: str) -> None:
        """Those of them that are ours."""
        self._writer.flush()
        await self._leases.release([each for each in session_ids if each in self._leases.owned])

    async def holders(self, records: Sequence[port.SessionRecord]) -> dict[str, port.Owner]:
        return await self._leases.holders(records)

    async def stored(self, older_than: str | None = None) -> Stored:
        known = await self._query(lambda c: directory.untouched(c, older_than))

        def measure() -> Stored:
            return [port.StoredSession(*row, segments.disk_bytes(self._folder.of(row[0]))) for row in known]

        return await self._threads.call(measure)

    async def empty(self, session_id: str) -> bool:
        self._check_writable()
        if session_id in self._leases.owned:
            return False
        async with self._leases.seized(session_id):
            record = await self._known(session_id)
            if record.last_seq < record.first_seq:
                return False
            numbers = {"first_seq": record.last_seq + 1, "last_seq": record.last_seq}
            await self._threads.call(lambda: segments.empty(self._folder.of(session_id), record))
            await self._writer.run(lambda c: directory.change(c, session_id, numbers))
        return True

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self.writable:
            await self._give_back(*self._leases.owned)
        await self._threads.close()
        await self._writer.close()  # the last connection empties the write-ahead log
        self._disk.threads.shutdown(wait=False)
        if self.writable:
            self._socket.unlink(missing_ok=True)
            os.close(self._in_use)

    async def _query(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """Read the directory with all that this process has said so far."""

        def work() -> T:
            with closing(self._database.reader()) as connection:
                return read(connection)

        await self._writer.written()
        return await self._threads.call(work)

    def _check_writable(self) -> None:
        refusal = self._refusal()
        if refusal is not None:
            raise refusal

    def _refusal(self) -> port.StoreError | None:
        """The error for every write to a closed or read-only store, else None."""
        path = self._database.path
        if self._closed:
            return port.StoreClosed(f"The store {path} is closed.")
        if not self.writable:
            return port.StoreReadOnly(f"{path} is open for reading only; nothing new is stored.")
        return None


def _lost_end(record: port.SessionRecord, after_seq: int, last_seq: int) -> Rows:
    """A lost row for what the directory knows of behind the end of the files."""
    first_seq = max(after_seq + 1, record.first_seq)
    return [segments.lost(first_seq, last_seq)] if first_seq <= last_seq else []
