"""The sessions that this process owns, and how it comes to own them."""

from __future__ import annotations

import logging
import shutil
import sqlite3
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from msgspec import structs

from dragoman.gateway.ports.store import (
    Fenced,
    HeldElsewhere,
    Lease,
    Owner,
    SessionHeld,
    SessionRecord,
    StoreError,
    UnknownSession,
)
from dragoman.store import directory, limits, locks, segments
from dragoman.store.connections import DirectoryWriter, Threads
from dragoman.store.folder import Folder, answers
from dragoman.store.owned import Disk, Owned
from dragoman.store.writer import Writer, sync_folder

log = logging.getLogger(__name__)


class Leases:
    def __init__(
        self, owner: Owner, folder: Folder, threads: Threads, writer: DirectoryWriter, disk: Disk
    ) -> None:
        self.owned: dict[str, Owned] = {}
        self._owner = owner
        self._folder = folder
        self._threads = threads
        self._writer = writer
        self._disk = disk

    async def begin(self, record: SessionRecord) -> None:
        """A new session, which is ours from birth; its record must be added behind this."""

        def make() -> Owned:
            folder = self._made(record.id)
            lock = locks.take(folder)
            if isinstance(lock, Owner):
                raise directory.exists(record.id, record.agent_session_id)
            try:
                lock.write(self._owner, record.epoch)
            except BaseException:
                lock.close()
                raise
            end = segments.End(record.first_seq, record.first_seq - 1)
            return Owned(lock, Writer(folder, end, record.epoch, durable=self._disk.durable), self._disk)

        self.owned[record.id] = await self._threads.take(make)

    async def undo(self, session_id: str) -> None:
        """A session that could not be added to the directory leaves no folder behind."""
        self.owned.pop(session_id).close()
        await self._threads.call(lambda: shutil.rmtree(self._folder.of(session_id), ignore_errors=True))

    async def acquire(self, record: SessionRecord, *, force: bool) -> Lease | HeldElsewhere:
        former = self.owned.get(record.id)
        if former is not None:
            await former.drained()
            if self.owned.pop(record.id, None) is former:  # nothing is appended at its epoch from now on
                former.writer.close()
            lock: locks.SessionLock | Owner = former.lock
        else:
            lock = await self._threads.take(lambda: self._lock(record, force=force))
        if isinstance(lock, Owner):
            return HeldElsewhere(lock)
        owned: Owned | None = None
        try:
            again = former is not None
            end, writer = await self._threads.call(lambda: self._claim(record, lock, again=again))
            owned = self.owned[record.id] = Owned(lock, writer, self._disk)
            columns = {"owner": self._owner.id, "node": self._owner.node, "epoch": writer.epoch}
            columns |= {"first_seq": end.first_seq, "last_seq": end.last_seq}
            await self._writer.run(lambda c: directory.change(c, record.id, columns))
        except BaseException:
            self.owned.pop(record.id, None)
            (owned or lock).close()
            raise
        if end.torn:
            log.warning("the end of a journal was cut off", extra={"session": record.id, "bytes": end.torn})
        return Lease(record.id, writer.epoch, end.last_seq, end.torn)

    def _lock(self, record: SessionRecord, *, force: bool) -> locks.SessionLock | Owner:
        folder = self._made(record.id)
        if record.owner is not None and not (folder / locks.NAME).exists():  # removed by hand
            address = self._owner.address.replace(self._owner.id, record.owner)
            if answers(Path(address.removeprefix("unix:"))):
                return Owner(record.node or self._owner.node, record.owner, address)
        return locks.take(folder, force=force)

    def _claim(
        self, record: SessionRecord, lock: locks.SessionLock, *, again: bool
    ) -> tuple[segments.End, Writer]:
        """Behind the lock: find the end of the journal, and begin an epoch that was never given.

        `again`: this process had it until now.
        """
        folder, before = self._folder.of(record.id), lock.read()
        end = segments.Reader().end(folder)
        known = max(before.epoch, end.epoch)
        epoch = max(known, record.epoch) + 1
        restored = record.epoch >= limits.BREAK_EPOCH and record.epoch > known
        broken = before.is_of_another_boot or restored
        if broken:
            epoch = max(epoch, int(time.time()))  # above those of events that may be lost
        unclean = before.owner is not None or record.owner is not None
        anew = bool(end.torn) or (unclean and not again)
        if self._mark_loss(record, folder, end, epoch, broken=broken):
            anew, end = False, structs.replace(segments.Reader().end(folder), torn=end.torn)
        lock.write(self._owner, epoch)
        return end, Writer(folder, end, epoch, durable=self._disk.durable, anew=anew)

    def _mark_loss(
        self, record: SessionRecord, folder: Path, end: segments.End, epoch: int, *, broken: bool
    ) -> bool:
        """Begin segments where the journal lost, or may have lost, its end; whether there are any.

        The directory is never ahead of the files, unless files are gone: their numbers are not given again.
        """
        first_seq = record.first_seq if end.segment is None else end.last_seq + 1
        lost = record.last_seq > end.last_seq
        if broken or (lost and end.segment is None):
            segments.begin(folder, first_seq, epoch, broken=broken)
        if lost and record.last_seq >= first_seq:
            segments.begin(folder, record.last_seq + 1, epoch)
        if (broken or lost) and self._disk.durable:
            sync_folder(folder)
        return broken or lost

    async def release(self, session_ids: Iterable[str]) -> None:
        """Give sessions back. If a full disk refuses that, a lock that no process holds says the same."""
        given = {}
        for session_id in session_ids:
            owned = self.owned[session_id]
            await owned.drained()
            if self.owned.get(session_id) is owned:
                given[session_id] = self.owned.pop(session_id)

        def work(connection: sqlite3.Connection) -> None:
            for session_id, owned in given.items():
                epoch, columns = owned.writer.epoch, {"owner": None, "last_seq": owned.writer.last_seq}
                with suppress(Fenced, UnknownSession):  # another's by now, or deleted
                    directory.update(connection, session_id, epoch, columns)
                if owned.lock.read().epoch == epoch:  # or it is on another owner's line by now
                    owned.lock.write(None, epoch)

        try:
            await self._writer.run(work)
        except StoreError as error:
            log.warning("sessions were not given back: %s", error, extra={"sessions": len(given)})
        finally:
            for owned in given.values():
                owned.close()

    @asynccontextmanager
    async def seized(self, session_id: str) -> AsyncIterator[None]:
        """Keep others from a session, in order to remove it or what is in it; it is not ours afterwards."""
        lease: Owned | locks.SessionLock | Owner | None = self.owned.get(session_id)
        if isinstance(lease, Owned):
            await lease.drained()
            self.owned.pop(session_id, None)
        else:
            folder = self._folder.of(session_id)
            lease = await self._threads.take(lambda: locks.take(folder) if folder.exists() else None)
        if isinstance(lease, Owner):
            text = f"Session {session_id} is live in another Dragoman process; close it there."
            raise SessionHeld(text, HeldElsewhere(lease))
        try:
            yield
        finally:
            if lease is not None:
                lease.close()

    async def holders(self, records: Sequence[SessionRecord]) -> dict[str, Owner]:
        leased = [record.id for record in records if record.owner is not None]

        def probe() -> dict[str, Owner | None]:
            return {each: locks.holder(self._folder.of(each)) for each in leased if each not in self.owned}

        probed = await self._threads.call(probe) if leased else {}
        owners = {each: self._owner if each in self.owned else probed.get(each) for each in leased}
        return {session_id: owner for session_id, owner in owners.items() if owner is not None}

    def _made(self, session_id: str) -> Path:
        folder = self._folder.of(session_id)
        if not folder.exists():
            folder.mkdir(parents=True, mode=0o700, exist_ok=True)
            if self._disk.durable:
                sync_folder(folder.parent)
        return folder
