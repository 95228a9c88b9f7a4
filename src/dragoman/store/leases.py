"""The leases of an open store: the sessions that this process owns."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import TypeAlias, TypeVar

from msgspec import structs

from dragoman import machine
from dragoman.atomic_file import sync_folder
from dragoman.gateway.ports import store as port
from dragoman.store import directory, limits, locks, segments
from dragoman.store.database import Database, has_old_tables
from dragoman.store.directory import Columns, DirectoryWriter, Threads
from dragoman.store.failure import explained
from dragoman.store.locks import Folder
from dragoman.store.writer import Disk, Owned, Writer
from dragoman.usage.ledger import UsageLedger

log = logging.getLogger(__name__)

T = TypeVar("T")
Write: TypeAlias = Callable[[sqlite3.Connection, Columns], None]


class Leases:
    """Implements `dragoman.gateway.ports.store.Leases`, and holds the state that `FileStore` needs."""

    def __init__(self, database: Database, runtime: Path, *, writable: bool) -> None:
        """Does no IO; `prepare` does."""
        self.path = database.path
        self.writable = writable
        self.has_old_sessions = False
        """A writable store has sessions of an older version, not converted yet (`dragoman.upkeep.conversion`)."""
        self.on_lost: port.Lost | None = None
        owner_id = f"{os.getpid()}-{os.urandom(6).hex()}"
        self._socket = runtime.absolute() / "owners" / f"{owner_id}.sock"
        address = (machine.node(), owner_id, f"unix:{self._socket}")
        self.owner = port.Owner(*address if writable else ("", "", ""))
        self._owned: dict[str, Owned] = {}
        self._database = database
        self._folder = Folder(database.path.absolute().parent)
        self._threads = Threads(database.path, limits.READERS)
        self._writer = DirectoryWriter(database.path, self._folder)
        self.usage = UsageLedger(self._writer, self._query, writable=writable)
        self._reader = segments.Reader()
        self._disk = Disk(durable=database.sync == "full")
        self._opened = ExitStack()
        """Closes the files."""
        self._closed = False

    def prepare(self) -> None:
        """Open the files; blocks. The store's lock comes first: without file locks SQLite fails and gives no reason."""
        with explained(self.path), ExitStack() as opened:
            if self.writable:
                self._folder.root.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._database.check_writable()
                opened.callback(os.close, self._folder.use())
                connection = opened.enter_context(closing(self._database.prepare()))
                self._socket.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._folder.journals.mkdir(exist_ok=True, mode=0o700)
                for session_id, hidden in self._folder.hidden().items():
                    directory.delete(connection, session_id)
                    shutil.rmtree(hidden, ignore_errors=True)
                self.has_old_sessions = has_old_tables(connection)
                self._writer.connection = connection
            else:
                self._database.prepare_reading()
            self._opened = opened.pop_all()

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await self._give_back(*self._owned)
        await self._writer.call(self._opened.close)  # the last connection empties the write-ahead log
        self.usage.close()
        for threads in (self._threads, self._writer, self._disk.threads):
            threads.shutdown(wait=False)
        if self.writable:
            self._socket.unlink(missing_ok=True)

    def _refusal(self) -> port.StoreError | None:
        """The error for every write to a closed or read-only store, else None."""
        if self._closed:
            return port.StoreClosed(f"The store {self.path} is closed.")
        if not self.writable:
            return port.StoreReadOnly(f"{self.path} is open for reading only; nothing new is stored.")
        return None

    def _check_writable(self) -> None:
        if (refusal := self._refusal()) is not None:
            raise refusal

    async def _query(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """Read the directory after the changes of this process were written to it."""

        def work() -> T:
            with closing(self._database.reader()) as connection:
                return read(connection)

        await self._writer.written()
        return await self._threads.call(work)

    async def get(self, session_id: str) -> port.SessionRecord | None:
        record = await self._query(lambda c: directory.get(c, session_id))
        if record is None:
            return None
        owned = self._owned.get(session_id)
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

    async def acquire(self, session_id: str, *, force: bool = False) -> port.Lease | port.HeldElsewhere:
        self._check_writable()
        await self._give_back(session_id)
        record = await self._known(session_id)
        try:
            return await self._own(
                record, lambda c, columns: directory.change(c, session_id, columns), force=force
            )
        except port.SessionHeld as held:
            return held.holder

    async def _own(self, record: port.SessionRecord, write: Write, *, force: bool = False) -> port.Lease:
        """Become the owner of a session, and have `write` put that into the directory."""
        owned, end, torn = await self._threads.call(lambda: self._claim(record, force=force))
        self._owned[record.id] = owned
        columns = {"owner": self.owner.id, "node": self.owner.node, "epoch": owned.epoch}
        columns |= {"first_seq": end.first_seq, "last_seq": end.last_seq}
        try:
            await self._writer.run(lambda c: write(c, columns))
        except BaseException:
            self._owned.pop(record.id, None)
            if owned.lock.in_new_folder:  # the session was deleted meanwhile, or cannot be created
                await self._threads.call(lambda: shutil.rmtree(owned.lock.folder, ignore_errors=True))
            owned.close()
            raise
        if torn:
            log.warning("the end of a journal was cut off", extra={"session": record.id, "bytes": torn})
        return port.Lease(record.id, owned.epoch, end.last_seq, torn)

    def _check_lock_file(self, record: port.SessionRecord) -> None:
        """Raise `SessionHeld` if the lock file was removed by hand and the owner lives, which will create it again."""
        if record.owner is not None and not (self._folder.of(record.id) / locks.NAME).exists():
            socket = self._socket.with_name(f"{record.owner}.sock")
            if machine.listens(socket):
                owner = port.Owner(record.node or self.owner.node, record.owner, f"unix:{socket}")
                raise locks.held(record.id, owner)

    def _claim(self, record: port.SessionRecord, *, force: bool) -> tuple[Owned, segments.End, int]:
        """Begin an unused epoch; returns the owned session, the end of its journal, and how many bytes there are torn.

        If the session was not released, or its journal may have lost its end, a new segment begins. The directory is
        never ahead of the files, unless files are gone: the numbers of their events are not used again.
        """
        self._check_lock_file(record)
        with ExitStack() as failing:
            lock = locks.take(self._folder.of(record.id), force=force, make=True)
            failing.callback(lock.close)
            if self._disk.durable and lock.in_new_folder:
                sync_folder(lock.folder.parent)
            before, end = lock.read(), segments.Reader().end(lock.folder)
            torn, next_seq = end.torn, record.first_seq if end.segment is None else end.last_seq + 1
            known = max(before.epoch, end.epoch)
            epoch = max(known, record.epoch) + 1
            restored = record.epoch >= limits.BREAK_EPOCH and record.epoch > known
            broken = before.is_of_another_boot or restored
            if broken:
                epoch = max(epoch, int(time.time()))  # above the epochs of events that may be lost
            if broken or torn or before.owner or record.owner or record.last_seq > end.last_seq:
                segments.begin(lock.folder, next_seq, epoch, broken=broken)
                if record.last_seq >= next_seq:
                    segments.begin(lock.folder, record.last_seq + 1, epoch)
                if self._disk.durable:
                    sync_folder(lock.folder)
                end = segments.Reader().end(lock.folder)
            lock.write(self.owner, epoch)
            owned = Owned(lock, Writer(lock.folder, end, epoch, durable=self._disk.durable), self._disk)
            failing.pop_all()
            return owned, end, torn

    async def renew(self) -> None:
        owned = dict(self._owned)
        lost = await self._threads.call(lambda: [name for name, each in owned.items() if not each.is_ours()])
        for session_id in lost:
            if self._owned.get(session_id) is owned[session_id]:
                self._lose(session_id, owned[session_id].epoch)

    def _lose(self, session_id: str, epoch: int) -> port.Fenced:
        error = directory.fenced(session_id, epoch)
        if self.on_lost is not None:
            self.on_lost(session_id, error)
        return error

    async def release(self, session_id: str, epoch: int) -> None:
        owned = self._owned.get(session_id)
        if owned is not None and owned.epoch == epoch:
            await self._give_back(session_id)

    async def _give_back(self, *session_ids: str) -> None:
        """Release those of the sessions that we own. If a full disk prevents the write, the free lock is enough."""
        self._writer.flush()
        given: dict[str, Owned] = {}
        for session_id in session_ids:
            owned = self._owned.get(session_id)
            if owned is not None:
                await owned.drained()
                if self._owned.get(session_id) is owned:
                    given[session_id] = self._owned.pop(session_id)

        def work(connection: sqlite3.Connection) -> None:
            for session_id, owned in given.items():
                columns = {"owner": None, "last_seq": owned.writer.last_seq}
                with suppress(port.Fenced, port.UnknownSession):  # has another owner by now, or is deleted
                    directory.change(connection, session_id, columns, owned.epoch)
                if owned.lock.read().epoch == owned.epoch:  # else another owner wrote its line
                    owned.lock.write(None, owned.epoch)

        try:
            if given:
                await self._writer.run(work)
        except port.StoreError as error:
            log.warning("sessions were not given back: %s", error, extra={"sessions": len(given)})
        finally:
            for owned in given.values():
                owned.close()

    async def holders(self, records: Sequence[port.SessionRecord]) -> dict[str, port.Owner]:
        leased = [record.id for record in records if record.owner is not None]
        ours = {each: self.owner for each in leased if each in self._owned}

        def probe() -> dict[str, port.Owner]:
            found = {each: locks.holder(self._folder.of(each)) for each in leased if each not in ours}
            return {session_id: owner for session_id, owner in found.items() if owner is not None}

        return ours | (await self._threads.call(probe) if leased else {})
