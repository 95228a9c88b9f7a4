"""The threads of a store: a few that read files, one that reads the directory, and one that writes it, in order.

Neither the event loop nor a reader waits for a write.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from dragoman.gateway.ports.store import Done, StoreClosed, StoreError
from dragoman.store import directory, limits
from dragoman.store.directory import Columns
from dragoman.store.failure import explained
from dragoman.store.folder import Folder
from dragoman.store.format import stamp_of
from dragoman.store.writer import Writer

T = TypeVar("T")


class Touch(NamedTuple):
    """A session was used."""

    epoch: int
    state: str
    when: float
    writer: Writer
    done: Done

    def columns(self) -> Columns:
        updated_at = stamp_of(int(self.when * 1000)).decode()
        return {"state": self.state, "updated_at": updated_at, "last_seq": self.writer.last_seq}


class Threads:
    """For what blocks; errors from below become the port's."""

    def __init__(self, path: Path, count: int) -> None:
        self._path = path
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="dragoman-store")
        self._loop = asyncio.get_running_loop()
        self._closed = False

    async def call(self, work: Callable[[], T]) -> T:
        if self._closed:
            raise StoreClosed(f"The store {self._path} is closed.")

        def perform() -> T:
            with explained(self._path):
                return work()

        return await self._loop.run_in_executor(self._pool, perform)

    async def take(self, work: Callable[[], T]) -> T:
        """The same for work whose result has to be closed: if the caller is cancelled meanwhile, it is closed here."""
        working = asyncio.ensure_future(self.call(work))
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            working.add_done_callback(_close_result)
            raise

    async def close(self) -> None:
        self._closed = True
        self._pool.shutdown(wait=False)


def _close_result(working: asyncio.Future[Any]) -> None:
    if not working.cancelled() and working.exception() is None and hasattr(working.result(), "close"):
        working.result().close()


class DirectoryThread(Threads):
    """One connection to the directory; each piece of work is a transaction of its own."""

    begin = "BEGIN"

    def __init__(self, path: Path) -> None:
        super().__init__(path, 1)
        self.connection: sqlite3.Connection | None = None
        """To be set before the first work."""

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await self.call(lambda: self._transact(work))

    async def close(self) -> None:
        """Close the connection after all queued work."""
        if self.connection is not None:
            await self.call(self.connection.close)
        await super().close()

    def _transact(self, work: Callable[[sqlite3.Connection], T]) -> T:
        assert self.connection is not None
        with self.connection as connection:
            connection.execute(self.begin)
            return work(connection)


class DirectoryWriter(DirectoryThread):
    begin = "BEGIN IMMEDIATE"

    def __init__(self, path: Path, folder: Folder) -> None:
        super().__init__(path)
        self._folder = folder
        self._touched: dict[str, Touch] = {}
        """The last ones, which wait for up to a second: the turns of a busy session cost a write a second."""
        self._last: Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def update(self, session_id: str, epoch: int, columns: Columns, done: Done | None) -> None:
        """Change a record, behind all that was said before."""
        self._write_touch(session_id)
        self._last = self._pool.submit(self._update, session_id, epoch, columns, done, describe=True)

    def touch(self, session_id: str, touch: Touch) -> None:
        self._touched[session_id] = touch
        if self._timer is None:
            self.flush()

    def flush(self) -> None:
        """Write now what waits."""
        if self._touched and self._timer is None:
            self._timer = self._loop.call_later(limits.DIRECTORY_SECONDS, self._due)
        for session_id in list(self._touched):
            self._write_touch(session_id)

    def _write_touch(self, session_id: str) -> None:
        touch = self._touched.pop(session_id, None)
        if touch is not None:
            self._last = self._pool.submit(self._update, session_id, touch.epoch, touch.columns(), touch.done)

    async def written(self) -> None:
        """Wait until every change is in the directory or was refused; a second at most.

        A directory that another process keeps locked can still be read.
        """
        self.flush()
        if self._last is not None and not self._last.done():
            await asyncio.wait([asyncio.wrap_future(self._last)], timeout=limits.DIRECTORY_SECONDS)

    async def close(self) -> None:
        self.flush()
        if self._timer is not None:
            self._timer.cancel()
        await super().close()

    def _due(self) -> None:
        self._timer = None
        self.flush()

    def _update(
        self, session_id: str, epoch: int, columns: Columns, done: Done | None, describe: bool = False
    ) -> None:
        outcome: StoreError | None = None

        def work(connection: sqlite3.Connection) -> None:
            directory.update(connection, session_id, epoch, columns)
            if describe and self._folder.of(session_id).exists():
                self._folder.describe(session_id, directory.columns_of(connection, session_id))

        try:
            with explained(self._path):
                self._transact(work)
        except StoreError as error:
            outcome = error
        if done is not None:
            self._loop.call_soon_threadsafe(done, outcome)
