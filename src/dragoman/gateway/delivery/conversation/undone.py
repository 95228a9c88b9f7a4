"""What was undone of a conversation: ranges of events that stay in the journal and are not shown any more.

A rewind appends a record `rewound`. Its member `undone` has all ranges that are undone from then on, as pairs of event
numbers; each such record replaces the ones before. Events keep their numbers, and nothing is removed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import AsyncIterator, Iterable
from typing import TypeAlias

from dragoman.gateway.delivery import events
from dragoman.gateway.json_types import JsonObject
from dragoman.gateway.ports.store import Store
from dragoman.wire.errors import Malformed

RECORD = "rewound"
MARK = events.record(RECORD)[:-1]
"""First bytes of the record."""
FILES = events.record("files_restored")[:-1]
"""First bytes of the record of a restore of files."""
FLAG = "rewound"
"""Fact in the directory about a session with such a record; set before the first one is written."""
READ_BACK = 2000

Range: TypeAlias = tuple[int, int]


class Undone:
    """The numbers of the events that are undone."""

    def __init__(self, ranges: Iterable[Range] = ()) -> None:
        self.ranges: list[Range] = sorted(ranges)
        self._firsts = [first for first, _ in self.ranges]

    def __contains__(self, seq: object) -> bool:
        if not self.ranges or not isinstance(seq, int):
            return False
        place = bisect_right(self._firsts, seq) - 1
        return place >= 0 and seq <= self.ranges[place][1]

    def begins(self, seq: int) -> bool:
        """Whether a range begins with this event."""
        return seq in self._firsts

    def __bool__(self) -> bool:
        return bool(self.ranges)

    @classmethod
    def read(cls, record: JsonObject) -> Undone:
        """Read the record of a rewind, leaving out what is not a range."""
        told = record.get("undone")
        return cls(
            (pair[0], pair[1])
            for pair in (told if isinstance(told, list) else [])
            if isinstance(pair, list) and len(pair) == 2 and all(isinstance(number, int) for number in pair)
        )


NOTHING = Undone()


def read_undone_record(event: bytes) -> Undone:
    """What is undone since an event that begins with `MARK`; nothing if it cannot be read."""
    try:
        return Undone.read(events.read_record(event))
    except Malformed:
        return NOTHING


async def read_undone(store: Store, session_id: str) -> Undone:
    """What is undone in a journal; one that was never rewound is not read."""
    known = await store.get(session_id)
    if known is None or not known.extra.get(FLAG):
        return NOTHING
    async for _, record in records_back(store, session_id, (MARK,)):
        return Undone.read(record)
    return NOTHING


async def records_back(
    store: Store, session_id: str, marks: tuple[bytes, ...]
) -> AsyncIterator[tuple[int, JsonObject]]:
    """The records that begin with one of `marks`, with their numbers, the newest first."""
    before = await store.last_seq(session_id) + 1
    while before > 1 and (rows := await store.read_before(session_id, before, READ_BACK)):
        for row in reversed(rows):
            if not any(mark in row.data for mark in marks):
                continue
            for place, event in reversed(list(enumerate(row.events()))):
                if event.startswith(marks):
                    try:
                        yield row.first_seq + place, events.read_record(event)
                    except Malformed:
                        continue
        before = rows[0].first_seq
