"""The threads of a store: a small pool for reads, and one thread that writes to the directory in order.

Neither the event loop nor a reader waits for a write.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from dragoman.gateway.ports.store import Done, StoreClosed, StoreError
from dragoman.store import directory, limits
from dragoman.store.directory import Columns
from dragoman.store.failure import explained
from dragoman.store.folder import Folder

T = TypeVar("T")


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
            raise StoreClosed(f"The store {self._path} is closed.") from error


class DirectoryWriter(Threads):
    """Writes to the directory with one connection in one thread."""

    def __init__(self, path: Path, folder: Folder) -> None:
        super().__init__(path, 1)
        self.connection: sqlite3.Connection | None = None
        """Must be set before the first `run`."""
        self._folder = folder
        self._touched: dict[str, tuple[int, Columns, Done]] = {}
        """Epoch and changes of sessions used lately; held back for up to a second, so that a turn costs no write."""
        self._last: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def run(self, work: Callable[[sqlite3.Connection], T]) -> asyncio.Future[T]:
        """Run `work` in a transaction."""

        def transact() -> T:
            assert self.connection is not None
            with self.connection as connection:
                connection.execute("BEGIN IMMEDIATE")
                return work(connection)

        return self.call(transact)

    def update(self, session_id: str, epoch: int, columns: Columns, done: Done) -> None:
        """Change a record and its description, after all earlier changes of its session."""
        if session_id in self._touched:
            self._write(session_id, *self._touched.pop(session_id))
        self._write(session_id, epoch, columns, done, describe=True)

    def touch(self, session_id: str, epoch: int, columns: Columns, done: Done) -> None:
        """Change a record within a second; of several such changes of a session only the last is written."""
        self._touched[session_id] = (epoch, columns, done)
        if self._timer is None:
            self._collect()

    def flush(self) -> None:
        """Write all touches that are held back."""
        touched, self._touched = self._touched, {}
        for session_id, change in touched.items():
            self._write(session_id, *change)

    def _collect(self) -> None:
        """Write the first touch at once, and those of the following second together."""
        busy = bool(self._touched)
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
        self, session_id: str, epoch: int, columns: Columns, done: Done, *, describe: bool = False
    ) -> None:
        def work(connection: sqlite3.Connection) -> None:
            directory.update(connection, session_id, epoch, columns)
            if describe:
                self._folder.describe(connection, session_id)

        def ended(working: asyncio.Future[None]) -> None:
            error = working.exception()
            if error is not None and not isinstance(error, StoreError):
                raise error
            done(error)

        self._last = self.run(work)
        self._last.add_done_callback(ended)
