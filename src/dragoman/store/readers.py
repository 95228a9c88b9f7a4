"""Reads, each on a connection of its own thread so that neither the event loop nor the writer waits."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from dragoman.gateway.ports.store import StoreClosed
from dragoman.store import limits
from dragoman.store.database import Database
from dragoman.store.failure import explain

T = TypeVar("T")


class Readers:
    """A few threads and as many read-only connections, made when first needed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pool = ThreadPoolExecutor(limits.READERS, thread_name_prefix="dragoman-reader")
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._closed = False

    async def call(self, work: Callable[[], T]) -> T:
        """Run blocking work that needs no connection, such as opening the store."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def query(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """Run `read` on one consistent snapshot."""
        if self._closed:
            raise StoreClosed(f"The store {self._database.path} is closed.")
        return await self.call(lambda: self._read(read))

    def close(self) -> None:
        """Close idle connections now and busy ones when their read ends."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        self._pool.shutdown(wait=False)

    def _read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        try:
            connection = self._take()
            try:
                connection.execute("BEGIN")
                return read(connection)
            finally:
                if connection.in_transaction:
                    connection.execute("COMMIT")
                self._give_back(connection)
        except (sqlite3.Error, OSError, UnicodeError, OverflowError) as error:
            raise explain(error, self._database.path) from error

    def _take(self) -> sqlite3.Connection:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return self._database.reader()

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()
