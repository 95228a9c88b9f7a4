"""Feeds the index: reads what is new in journals and in agents' own histories, and removes what is gone.

Used by commands, which look for what is new before they search, and by the background process (`__main__.py`).
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from dragoman.gateway.delivery.conversation.undone import MARK, read_undone_record
from dragoman.gateway.ports.store import SchemaTooNew, UnknownSession
from dragoman.search.histories import Histories, KnownRow
from dragoman.search.index import Index, Reached, Source
from dragoman.search.passages import Collector
from dragoman.store import segments
from dragoman.store.database import Database
from dragoman.store.failure import explain
from dragoman.store.locks import Folder

STEP_BYTES = 4 * 1024 * 1024
"""Bytes of a journal in one transaction: other processes wait that long for the index."""
DATABASE = "dragoman.db"


class Left(Struct):
    """What was not read in time."""

    sessions: int = 0


class Feed:
    def __init__(self, state: Path, index: Index, histories: Histories | None = None) -> None:
        self._state = state
        self._index = index
        self._folder = Folder(state)
        self._reader = segments.Reader()
        self._histories = histories
        self.wanted: Callable[[], bool] = lambda: True
        """Asked between two steps; False ends the feeding."""

    def catch_up(self, seconds: float | None = None) -> Left:
        """Read everything that is new, for `seconds` at most; newest sessions last, as they are told."""
        until = time.monotonic() + seconds if seconds is not None else None
        journals, own_ids = sources(self._state)
        left = Left()
        known = self._index.known()
        histories = self._histories.sources(own_ids, known) if self._histories is not None else []
        self._remove(known.keys() - {source.id for source in (*journals, *histories)}, known)
        for source in (*journals, *histories):
            if not _is_new(source, known.get(source.id)):
                continue
            if not self.wanted() or (until is not None and time.monotonic() >= until):
                left.sessions += 1
            else:
                left.sessions += not self._read(source, until)
        return left

    def _remove(self, gone: Iterable[str], known: dict[str, KnownRow]) -> None:
        for session_id in gone:
            if known[session_id][3] == "history" and self._histories is None:
                continue  # not looked for
            with self._index.step():
                self._index.forget(session_id)

    def _read(self, source: Source, until: float | None) -> bool:
        """Read one session to its end; False if the time was over before."""
        while True:
            with self._index.step():
                reached = self._index.reached(source)
                step = self._history if source.kind == "history" else self._journal
                more = step(source, reached)
                self._index.store(reached)
            if not more:
                return True
            if not self.wanted() or (until is not None and time.monotonic() >= until):
                return False

    def _journal(self, source: Source, reached: Reached) -> bool:
        """Read one step of a journal; True if there is more.

        The cursor moves to the last end of a turn, or, in a turn that is larger than a step, to the last event read.
        """
        collector = Collector()
        try:
            rows = self._reader.read(self._folder.of(source.id), reached.cursor, STEP_BYTES)
        except (UnknownSession, SchemaTooNew, OSError):
            rows = []  # `dragoman doctor` reports it
        if not rows:
            reached.seen = max(reached.seen, source.last_seq)
            self._index.add(source, reached, [])
            return False
        more = sum(len(row.data) for row in rows) >= STEP_BYTES
        begun, ended = reached.cursor, 0
        for row in rows:
            for seq, event in enumerate(row.events(), row.first_seq):
                if event.startswith(MARK):
                    self._index.mark_undone(reached, read_undone_record(event).ranges)
                if collector.event(seq, row.ts, event):
                    ended = seq
                    complete = collector.taken()
                    self._index.add(source, reached, complete)
                    reached.cursor = seq
        last = rows[-1].last_seq
        if not (more and ended > begun):  # the rest of the step is read again with what follows
            collector.close()
            self._index.add(source, reached, collector.taken())
            if more:
                reached.cursor = last
        reached.seen = max(last, source.last_seq) if not more else last
        return more

    def _history(self, source: Source, reached: Reached) -> bool:
        """Read an agent's own history, as a whole: it has no numbers by which to continue."""
        assert self._histories is not None
        collector = Collector()
        for number, (at, update) in enumerate(self._histories.updates(source), 1):
            collector.update(number, at, update)
        collector.close()
        reached.cursor = 0
        self._index.add(source, reached, collector.taken())
        reached.seen = source.last_seq
        return False


def _is_new(source: Source, known: KnownRow | None) -> bool:
    if known is None:
        return source.last_seq >= source.first_seq or source.open
    row = (source.agent, source.cwd, source.title, source.kind, source.first_seq)
    if source.open or known[:5] != row:
        return True
    return known[5] != source.last_seq if source.kind == "history" else known[5] < source.last_seq


def sources(state: Path) -> tuple[list[Source], set[tuple[str, str]]]:
    """The sessions of the directory, least recently used first; and agents with the ids that they have for theirs."""
    path = state / DATABASE
    if not path.exists():
        return [], set()
    query = (
        "SELECT id, agent, cwd, title, first_seq, last_seq, owner IS NOT NULL AND state = 'working', agent_session_id"
        " FROM directory ORDER BY updated_at"
    )
    database = Database(path)
    try:
        database.prepare_reading()
        with closing(database.reader()) as connection:
            rows = connection.execute(query).fetchall()
    except sqlite3.Error as error:
        raise explain(error, path) from error
    found = [Source(row[0], row[1], row[2], row[3], "journal", row[4], row[5], bool(row[6])) for row in rows]
    return found, {(row[1], row[7]) for row in rows if row[7]}
