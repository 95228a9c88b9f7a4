"""A commit group: what was queued together, merged into few rows and written in one transaction.

One operation that is refused does not hurt the others; when the disk fails, all of the group fail.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from dragoman.gateway.ports.store import BadEvent, Row, StoreBusy, StoreError
from dragoman.store import directory, journal, limits
from dragoman.store.failure import explain
from dragoman.store.operations import Append, Operation, Task, Update

# What one operation can do wrong by itself; every other error of SQLite concerns the whole transaction.
_ITS_OWN_FAULT = (
    StoreError,
    OSError,
    ValueError,
    OverflowError,
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.ProgrammingError,
)


class Run:
    """Appends to one journal that continue each other, as the rows they become."""

    def __init__(self, session_id: str, epoch: int, first_seq: int) -> None:
        self.session_id = session_id
        self.epoch = epoch
        self.next_seq = first_seq
        self.appends: list[Append] = []
        self.rows: list[Row] = []
        self._parts: list[bytes] = []
        self._first = first_seq
        self._ts = 0
        self._size = 0

    def add(self, append: Append, chunks: Sequence[tuple[int, bytes]]) -> None:
        self.appends.append(append)
        for count, data in chunks:
            if self._size + len(data) > limits.ROW_BYTES:
                self.cut()
            if not self._parts:
                self._ts = append.ts
            self._parts.append(data)
            self._size += len(data) + 1
            self.next_seq += count

    def cut(self) -> None:
        """End the row that is being filled."""
        if self._parts:
            count = self.next_seq - self._first
            self.rows.append(Row(self._first, self._ts, count, b"\n".join(self._parts)))
        self._parts = []
        self._first = self.next_seq
        self._size = 0


Step: TypeAlias = Run | Update | Task


def commit(connection: sqlite3.Connection, operations: Sequence[Operation], path: Path) -> bool:
    """Write a group; each operation carries its own outcome afterwards. False if the database was locked."""
    steps = plan(operations)
    try:
        # SQLite gives a lone statement its own transaction: saves two calls on the busiest path.
        together = _rows_of_different_sessions(steps)
        if together == len(steps) == 1:
            _perform(connection, steps[0], path)
            return True
        if together == len(steps) and _write_together(connection, steps):
            return True
        connection.execute("BEGIN IMMEDIATE")
        while steps:
            together = _rows_of_different_sessions(steps)
            first, steps = steps[: together or 1], steps[together or 1 :]
            if not _write_together(connection, first):
                for step in first:
                    _perform(connection, step, path)
        connection.execute("COMMIT")
        return True
    except sqlite3.Error as error:
        failure = explain(error, path)
        for operation in operations:
            operation.error = operation.error or failure
        if connection.in_transaction:
            with suppress(sqlite3.Error):  # the first error is the one to tell; SQLite recovers at next BEGIN
                connection.execute("ROLLBACK")
        return not isinstance(failure, StoreBusy)


def plan(operations: Sequence[Operation]) -> list[Step]:
    """Merge appends per session. A task may create or take a session, so nothing is merged across one."""
    steps: list[Step] = []
    runs: dict[str, Run] = {}
    for operation in operations:
        if not isinstance(operation, Append):
            if isinstance(operation, Task):
                runs.clear()
            steps.append(operation)
            continue
        chunks = list(_chunks(operation.events, operation.size))
        if any(data.count(b"\n") != count - 1 for count, data in chunks):
            operation.error = BadEvent("An event has a line feed in it; journal events are single lines.")
            continue
        if not chunks:
            continue
        run = runs.get(operation.session_id)
        if run is None or run.epoch != operation.epoch or run.next_seq != operation.first_seq:
            run = runs[operation.session_id] = Run(operation.session_id, operation.epoch, operation.first_seq)
            steps.append(run)
        run.add(operation, chunks)
    for step in steps:
        if isinstance(step, Run):
            step.cut()
    return steps


def _chunks(events: list[bytes], size: int) -> Iterator[tuple[int, bytes]]:
    """Events joined into pieces that fit a row; an event larger than a row has one to itself."""
    if size <= limits.ROW_BYTES:
        if events:
            yield len(events), b"\n".join(events)
        return
    start = filled = 0
    for index, event in enumerate(events):
        if index > start and filled + len(event) > limits.ROW_BYTES:
            yield index - start, b"\n".join(events[start:index])
            start, filled = index, 0
        filled += len(event) + 1
    yield len(events) - start, b"\n".join(events[start:])


def _rows_of_different_sessions(steps: Sequence[Step]) -> int:
    """How many of the first steps are one row each, of a session each."""
    sessions: set[str] = set()
    for step in steps[: journal.MOST_TOGETHER]:
        if not isinstance(step, Run) or len(step.rows) != 1 or step.session_id in sessions:
            break
        sessions.add(step.session_id)
    return len(sessions)


def _write_together(connection: sqlite3.Connection, steps: Sequence[Step]) -> bool:
    """With one statement, each step with its own outcome; False if each has to be tried alone."""
    runs = [step for step in steps if isinstance(step, Run)]
    if len(runs) < 2:
        return False
    try:
        errors = journal.append_many(connection, [(run.session_id, run.epoch, run.rows[0]) for run in runs])
    except _ITS_OWN_FAULT:
        return False
    for run, error in zip(runs, errors, strict=True):
        for append in run.appends if error is not None else ():
            append.error = error
    return True


def _perform(connection: sqlite3.Connection, step: Step, path: Path) -> None:
    try:
        if isinstance(step, Run):
            for row in step.rows:
                journal.append(connection, step.session_id, step.epoch, row)
        elif isinstance(step, Update):
            directory.update(connection, step.session_id, step.epoch, step.columns)
        else:
            _perform_task(connection, step)
    except _ITS_OWN_FAULT as error:
        failure = explain(error, path)
        for operation in step.appends if isinstance(step, Run) else [step]:
            operation.error = failure


def _perform_task(connection: sqlite3.Connection, task: Task) -> None:
    connection.execute("SAVEPOINT task")
    try:
        task.value = task.run(connection)
    except _ITS_OWN_FAULT:
        connection.execute("ROLLBACK TO task")
        raise
    finally:
        if connection.in_transaction:  # a full disk may have rolled everything back already
            connection.execute("RELEASE task")
