"""How many records there are in each hour, counted segment by segment so that a reader sees it grow.

What is asked most, all records or those of a kind, decision or agent, is counted once for each complete segment and
remembered. Other questions read the lines that may match.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from dragoman.audit.browse.segments import Segment, candidates, segments
from dragoman.audit.read import HIDDEN, Query

MOST_REMEMBERED = 2000
"""Segments whose counts are remembered: about sixty million records."""
HOUR = len("2026-11-18T03")


class Row(NamedTuple):
    """What records are counted by."""

    hour: str
    kind: str
    decision: object
    agent: object
    of_session: bool
    unmediated: bool


class Line(msgspec.Struct, frozen=True):
    """The members of a record that are counted by, or asked for."""

    at: str
    kind: str
    session: Any = None
    agent: Any = None
    tool: Any = None
    decision: Any = None
    by: Any = None
    identity: Any = None
    call: Any = None
    unmediated: Any = None


@dataclass(slots=True)
class Tally:
    """Records of one hour."""

    records: int = 0
    denied: int = 0
    unmediated: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """What one segment added."""

    bytes: int
    """Read so far."""
    of: int
    hours: dict[str, Tally] = field(default_factory=dict)


_decode = msgspec.json.Decoder(Line).decode


class Counts:
    """Any thread may use it."""

    def __init__(self) -> None:
        self._remembered: OrderedDict[Path, tuple[int, Counter[Row]]] = OrderedDict()
        """With the size that a segment had."""

    def count(self, folder: Path, asked: Query) -> Iterator[Step]:
        """What each segment adds, the latest segment first."""
        found = segments(folder)
        of, done = sum(segment.size for segment in found), 0
        for segment in found:
            done += segment.size
            if asked.since and segment.ends < asked.since:
                break
            if not asked.until or segment.begins < asked.until:
                yield Step(done, of, self._of(segment, asked))
        yield Step(of, of)

    def _of(self, segment: Segment, asked: Query) -> dict[str, Tally]:
        by_rows = _by_rows(asked)
        rows = self._rows(segment) if by_rows else _matching(segment, asked)
        hours: dict[str, Tally] = {}
        for row, count in rows.items():
            if _holds(row, asked) and not (by_rows and _is_outside(row.hour, asked)):
                tally = hours.setdefault(row.hour, Tally())
                tally.records += count
                tally.denied += count if row.decision == "deny" else 0
                tally.unmediated += count if row.unmediated else 0
        return hours

    def _rows(self, segment: Segment) -> Counter[Row]:
        size, rows = self._remembered.get(segment.path, (-1, Counter[Row]()))
        if size != segment.size:
            rows = _matching(segment, Query())
            self._remembered[segment.path] = (segment.size, rows)
            while len(self._remembered) > MOST_REMEMBERED:
                self._remembered.popitem(last=False)
        return rows


def _by_rows(asked: Query) -> bool:
    """Whether rows say enough: hours are the smallest part of time in them, and few members are there."""
    exact = all(not time or time[HOUR:] == ":00:00.000Z" for time in (asked.since, asked.until))
    return exact and all(getattr(asked, name) is None for name in ("session", "tool", "by", "call"))


def _is_outside(hour: str, asked: Query) -> bool:
    return bool((asked.since and hour < asked.since[:HOUR]) or (asked.until and hour >= asked.until[:HOUR]))


def _holds(row: Row, asked: Query) -> bool:
    """Whether records of a row match in what rows have; the rest was looked at line by line."""
    if asked.of_sessions and not row.of_session:
        return False
    if asked.unmediated and not row.unmediated:
        return False
    return all(getattr(asked, name) in (None, getattr(row, name)) for name in ("kind", "decision", "agent"))


def _matching(segment: Segment, asked: Query) -> Counter[Row]:
    rows: Counter[Row] = Counter()
    for line in candidates(segment, asked):
        try:
            found = _decode(line)
        except msgspec.MsgspecError:
            continue
        if found.kind not in HIDDEN and _is_about(found, asked):
            rows[_row(found)] += 1
    return rows


def _row(found: Line) -> Row:
    return Row(
        found.at[:HOUR],
        found.kind,
        _word(found.decision),
        _word(found.agent),
        isinstance(found.session, str),
        found.kind == "unmediated" or found.unmediated is True,
    )


def _is_about(found: Line, asked: Query) -> bool:
    """Whether a record matches in what rows do not have."""
    if (asked.since and found.at < asked.since) or (asked.until and found.at >= asked.until):
        return False
    if asked.by is not None and asked.by not in (found.by, found.identity):
        return False
    return all(getattr(asked, name) in (None, getattr(found, name)) for name in ("session", "tool", "call"))


def _word(value: object) -> str | None:
    return value if isinstance(value, str) else None
