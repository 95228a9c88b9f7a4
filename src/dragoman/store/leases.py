"""The sessions that this process owns, and how it comes to own them."""

from __future__ import annotations

import logging
import shutil
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from dragoman.gateway.ports import store as port
from dragoman.store import directory, limits, locks, segments
from dragoman.store.connections import DirectoryWriter, Threads
from dragoman.store.folder import Folder
from dragoman.store.owned import Disk, Owned
from dragoman.store.writer import Writer, sync_folder

log = logging.getLogger(__name__)

T = TypeVar("T")


class Leases:
    def __init__(
        self, owner: port.Owner, folder: Folder, threads: Threads, writer: DirectoryWriter, disk: Disk
    ) -> None:
        self.owned: dict[str, Owned] = {}
        self._owner = owner
        self._folder = folder
        self._threads = threads
        self._writer = writer
        self._disk = disk

    async def begin(self, record: port.SessionRecord) -> None:
        """A new session, which is ours from birth; its record must be added behind this."""
        end = segments.End(record.first_seq, record.first_seq - 1)
        owned = await self._locked(record.id, lambda lock: self._own(lock, end, record.epoch))
        if isinstance(owned, port.Owner):
            raise directory.exists(record.id, record.agent_session_id)
        self.owned[record.id] = owned

    async def undo(self, session_id: str) -> None:
        """A session that could not be added to the directory leaves no folder behind."""
        self.owned.pop(session_id).close()
        await self._threads.call(lambda: shutil.rmtree(self._folder.of(session_id), ignore_errors=True))

    async def acquire(
        self, record: port.SessionRecord, *, force: bool = False
    ) -> port.Lease | port.HeldElsewhere:
        """Take a session that is not in `owned`."""
        claimed = await self._locked(record.id, partial(self._claim, record), force=force)
        if isinstance(claimed, port.Owner):
            return port.HeldElsewhere(claimed)
        owned, end, torn = claimed
        self.owned[record.id] = owned
        columns = {"owner": self._owner.id, "node": self._owner.node, "epoch": owned.epoch}
        columns |= {"first_seq": end.first_seq, "last_seq": end.last_seq}
        try:
            await self._writer.run(lambda c: directory.change(c, record.id, columns))
        except BaseException:
            self.owned.pop(record.id, None)
            owned.close()
            raise
        if torn:
            log.warning("the end of a journal was cut off", extra={"session": record.id, "bytes": torn})
        return port.Lease(record.id, owned.epoch, end.last_seq, torn)

    async def _locked(
        self, session_id: str, claim: Callable[[locks.SessionLock], T], *, force: bool = False
    ) -> T | port.Owner:
        """Lock a session, and do this in the same thread; the lock is let go if that fails."""

        def work() -> T | port.Owner:
            lock = locks.take(self._made(session_id), force=force)
            if isinstance(lock, port.Owner):
                return lock
            try:
                return claim(lock)
            except BaseException:
                lock.close()
                raise

        return await self._threads.call(work)

    def _claim(self, record: port.SessionRecord, lock: locks.SessionLock) -> tuple[Owned, segments.End, int]:
        """Behind the lock: begin an epoch that was never given, and find the end of the journal and what is torn of it.

        Where it was not given back, or may have lost its end, a segment is begun. The directory is never ahead of the
        files, unless files are gone: their numbers are not given again.
        """
        folder, before = self._folder.of(record.id), lock.read()
        end = segments.Reader().end(folder)
        torn, next_seq = end.torn, record.first_seq if end.segment is None else end.last_seq + 1
        known = max(before.epoch, end.epoch)
        epoch = max(known, record.epoch) + 1
        restored = record.epoch >= limits.BREAK_EPOCH and record.epoch > known
        broken = before.is_of_another_boot or restored
        if broken:
            epoch = max(epoch, int(time.time()))  # above those of events that may be lost
        if broken or torn or before.owner or record.owner or record.last_seq > end.last_seq:
            segments.begin(folder, next_seq, epoch, broken=broken)
            if record.last_seq >= next_seq:
                segments.begin(folder, record.last_seq + 1, epoch)
            if self._disk.durable:
                sync_folder(folder)
            end = segments.Reader().end(folder)
        return self._own(lock, end, epoch), end, torn

    def _own(self, lock: locks.SessionLock, end: segments.End, epoch: int) -> Owned:
        lock.write(self._owner, epoch)
        return Owned(lock, Writer(lock.folder, end, epoch, durable=self._disk.durable), self._disk)

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
                columns = {"owner": None, "last_seq": owned.writer.last_seq}
                with suppress(port.Fenced, port.UnknownSession):  # another's by now, or deleted
                    directory.update(connection, session_id, owned.epoch, columns)
                if owned.lock.read().epoch == owned.epoch:  # or it is on another owner's line by now
                    owned.lock.write(None, owned.epoch)

        try:
            await self._writer.run(work)
        except port.StoreError as error:
            log.warning("sessions were not given back: %s", error, extra={"sessions": len(given)})
        finally:
            for owned in given.values():
                owned.close()

    @asynccontextmanager
    async def seized(self, session_id: str) -> AsyncIterator[None]:
        """Keep others from a session that is not in `owned`, in order to remove it or what is in it."""
        folder = self._folder.of(session_id)
        lock = await self._threads.call(lambda: locks.take(folder) if folder.exists() else None)
        if lock is None:
            yield
        elif isinstance(lock, port.Owner):
            text = f"Session {session_id} is live in another Dragoman process; close it there."
            raise port.SessionHeld(text, port.HeldElsewhere(lock))
        else:
            with closing(lock):
                yield

    async def holders(self, records: Sequence[port.SessionRecord]) -> dict[str, port.Owner]:
        leased = [record.id for record in records if record.owner is not None]
        ours = {each: self._owner for each in leased if each in self.owned}

        def probe() -> dict[str, port.Owner]:
            found = {each: locks.holder(self._folder.of(each)) for each in leased if each not in ours}
            return {session_id: owner for session_id, owner in found.items() if owner is not None}

        return ours | (await self._threads.call(probe) if leased else {})

    def _made(self, session_id: str) -> Path:
        folder = self._folder.of(session_id)
        if not folder.exists():
            folder.mkdir(parents=True, mode=0o700, exist_ok=True)
            if self._disk.durable:
                sync_folder(folder.parent)
        return folder
