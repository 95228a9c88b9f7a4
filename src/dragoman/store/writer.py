"""The one thread that writes: takes what is queued, commits it as a group, hands the group back."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue

from dragoman.gateway.ports.store import StoreClosed
from dragoman.store import group, limits
from dragoman.store.checkpointer import Checkpointer
from dragoman.store.operations import Append, Operation, Task
from dragoman.store.pace import Pace

log = logging.getLogger(__name__)


class Writer:
    """A thread with a queue. `deliver` is called in that thread, once per group, in the order of `put`."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        deliver: Callable[[list[Operation]], None],
        checkpointer: Checkpointer,
    ) -> None:
        self._connection = connection
        self._path = path
        self._checkpointer = checkpointer
        self._pace = Pace()
        self._deliver = deliver
        self._queue: SimpleQueue[Operation | None] = SimpleQueue()
        self._on_end: Callable[[], None] = lambda: None
        self._waiting: list[Operation] = []
        """What was not written because the database was locked."""
        self._locked_since = 0.0
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="dragoman-writer", daemon=True)
        self._thread.start()

    def put(self, operation: Operation) -> None:
        self._queue.put(operation)

    def finish(self, on_end: Callable[[], None]) -> None:
        """Write what is queued and end the thread, which calls `on_end` last."""
        self._on_end = on_end
        self._queue.put(None)

    def _run(self) -> None:
        operations: list[Operation] = []
        try:
            while operations := self._next_group():
                written = group.commit(self._connection, operations, self._path)
                if written:
                    self._locked_since = 0.0
                else:
                    operations = self._put_back(operations)
                self._deliver(operations)
                self._checkpointer.wrote(_pages(operations) if written else 0, self._connection)
                operations = []
        finally:
            self._abandon([*self._waiting, *operations])
            self._checkpointer.close()
            self._connection.close()  # the last one to close empties the log
            self._on_end()

    def _put_back(self, operations: list[Operation]) -> list[Operation]:
        """Another process has the database locked: events wait for it, who waits for an answer is told; returns those.

        Agents are held back meanwhile, once enough has piled up.
        """
        now = time.monotonic()
        if not self._locked_since:
            self._locked_since = now
            log.warning("the database is locked by another process, events wait for it: %s", self._path)
        if self._ending or now - self._locked_since > limits.BUSY_PATIENCE:
            self._locked_since = 0.0
            return operations
        self._waiting = [each for each in operations if not isinstance(each, Task)]
        for each in self._waiting:
            each.error = None
        time.sleep(limits.BUSY_PAUSE)
        return [each for each in operations if isinstance(each, Task)]

    def _next_group(self) -> list[Operation]:
        """What had to wait, or else the next operation, and all that stand behind it; empty at the end."""
        operations, self._waiting = self._waiting, []
        size = sum(operation.size for operation in operations)
        try:
            operation = self._queue.get(block=not operations)
        except Empty:
            return operations
        if isinstance(operation, Append) and (
            pause := self._pace.wait(operation.session_id, time.monotonic())
        ):
            time.sleep(pause)
        while operation is not None:
            operations.append(operation)
            size += operation.size
            if size >= limits.GROUP_BYTES or len(operations) >= limits.GROUP_OPERATIONS:
                return operations
            try:
                operation = self._queue.get_nowait()
            except Empty:
                return operations
        self._ending = True
        if operations:
            self._queue.put(None)  # the end was seen: commit first, meet it again
        return operations

    def _abandon(self, operations: list[Operation]) -> None:
        """Nobody may wait for ever for a thread that is gone, even if a bug ended it."""
        while True:
            for operation in operations:
                operation.error = operation.error or StoreClosed(f"The store {self._path} is closed.")
            if operations:
                self._deliver(operations)
            try:
                left = self._queue.get_nowait()
            except Empty:
                return
            operations = [left] if left is not None else []


def _pages(operations: list[Operation]) -> int:
    """A guess: each operation changes a page of its own and one of the directory."""
    return 2 * len(operations) + sum(operation.size for operation in operations) // limits.PAGE_BYTES
