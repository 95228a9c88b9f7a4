"""Moves the write-ahead log into the database beside the writer, who would otherwise stop for it.

A passive checkpoint waits for nobody and nobody waits for it. But while the writer goes on it never reaches the end of
the log, so the log would not be begun anew. Once it is long (`LOG_PAGES`), what came during a pass is moved by another,
until so little is left (`LAST_PAGES`) that the writer can move that itself between two commits.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from queue import SimpleQueue

from dragoman.store import limits
from dragoman.store.database import Database

log = logging.getLogger(__name__)

MOST_PASSES = 8
"""A disk slower than the writer never catches up with it; then the writer moves more."""


class Checkpointer:
    """A thread, from the first time that there is enough to move; everything else is the writer's to call."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pages = 0
        self._wanted: SimpleQueue[bool] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._busy = False
        self._nearly_done = False

    def wrote(self, pages: int, connection: sqlite3.Connection) -> None:
        """About so many pages more are in the log; `connection` is the writer's own."""
        if self._nearly_done:
            self._nearly_done = False
            try:
                _move(connection)
            except sqlite3.Error as error:
                # The next commit meets the same trouble, and tells who is concerned.
                log.warning("the log could not be begun anew: %s", error)
        self._pages += pages
        if self._pages < limits.CHECKPOINT_PAGES or self._busy:
            return
        self._pages = 0
        self._busy = True
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="dragoman-checkpointer", daemon=True)
            self._thread.start()
        self._wanted.put(True)

    def close(self) -> None:
        """Returns when the thread has ended."""
        if self._thread is not None:
            self._wanted.put(False)
            self._thread.join()

    def _run(self) -> None:
        connection: sqlite3.Connection | None = None
        try:
            connection = self._database.checkpointer()
            while self._wanted.get():
                length = _move(connection)
                if length >= limits.LOG_PAGES:
                    self._move_the_rest(connection, length)
                self._busy = False
        except (sqlite3.Error, OSError) as error:
            # Stays busy: from now on it is the writer's work again, who will say so if it cannot be done at all.
            log.warning("the log is not moved beside the writer any more: %s", error)
        finally:
            if connection is not None:
                connection.close()

    def _move_the_rest(self, connection: sqlite3.Connection, length: int) -> None:
        for _ in range(MOST_PASSES):
            before, length = length, _move(connection)
            if length - before < limits.LAST_PAGES:
                break
        self._nearly_done = True


def _move(connection: sqlite3.Connection) -> int:
    """Move what is in the log; returns how many pages it has."""
    _, length, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return int(length)
