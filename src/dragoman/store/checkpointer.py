"""Moves the write-ahead log into the database beside the writer, who would otherwise stop for it.

A passive checkpoint waits for nobody and nobody waits for it. But while the writer goes on it never reaches the end of
the log, so the log is not begun anew: the writer does that itself, seldom and with little left to move (`LOG_PAGES`).
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from queue import SimpleQueue

from dragoman.store import limits
from dragoman.store.database import Database

log = logging.getLogger(__name__)


class Checkpointer:
    """A thread, from the first time that there is enough to move; everything else is the writer's to call."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pages = 0
        self._wanted: SimpleQueue[bool] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._busy = False

    def wrote(self, pages: int) -> None:
        """About so many pages more are in the log."""
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
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                self._busy = False
        except (sqlite3.Error, OSError) as error:
            # Stays busy: from now on it is the writer's work again, who will say so if it cannot be done at all.
            log.warning("the log is not moved beside the writer any more: %s", error)
        finally:
            if connection is not None:
                connection.close()
