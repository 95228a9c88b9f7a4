"""A page of records, the latest first to be found; the next page goes on before its oldest.

The order is by time, then by chain and number, so that each record is on exactly one page. A search that takes too long
ends early: the page then has what was found up to a time, and its cursor goes on from there.
"""

from __future__ import annotations

import heapq
import re
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from dragoman.audit import record
from dragoman.audit.browse.segments import Segment, candidates, segments
from dragoman.audit.read import HIDDEN, Query, query

PATIENCE = 1.0
"""Seconds of one search."""
LAST = "~"
"""In a place, after all chains."""
_PLACE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)/(~|\d{8}-[a-z2-9]{8})/(\d{1,15})")


class BadPlace(ValueError):
    """A cursor that is none of ours."""


class Place(NamedTuple):
    """Where a record stands in the order of all records."""

    at: str
    chain: str
    n: int

    def __str__(self) -> str:
        return f"{self.at}/{self.chain}/{self.n}"


@dataclass(frozen=True, slots=True)
class Page:
    records: list[dict[str, Any]]
    """The oldest first; each has its `id`."""
    following: Place | None
    """The next page is before it; None if there is none."""


def read_place(text: str) -> Place:
    found = _PLACE.fullmatch(text)
    if found is None:
        raise BadPlace(text)
    return Place(found[1], found[2], int(found[3]))


def read_page(
    folder: Path, asked: Query, limit: int, before: Place | None = None, patience: float = PATIENCE
) -> Page:
    """The latest `limit` records that match and stand before a place."""
    kept = _Latest(limit, before)
    if asked.session is not None:  # its places are known
        for found in query(folder, asked):
            kept.offer(_place(found), found)
        return kept.page()
    deadline = monotonic() + patience
    looked_at = False
    for segment in segments(folder):
        if kept.full and segment.ends < kept.oldest.at:
            kept.more = True  # this segment, and every later one, ended before the records that were found
            break
        if (before and segment.begins > before.at) or (asked.until and segment.begins >= asked.until):
            continue
        if asked.since and segment.ends < asked.since:
            break
        whole = before is None or segment.ends < before.at  # else the next search would begin here again
        if looked_at and whole and monotonic() > deadline:
            return kept.page_down_to(segment.ends)
        _search(segment, asked, kept)
        looked_at = True
    return kept.page()


class _Latest:
    """Keeps the latest records that it is offered."""

    def __init__(self, limit: int, before: Place | None) -> None:
        self._limit = limit
        self._before = before
        self._kept: list[tuple[Place, dict[str, Any]]] = []
        self.more = False

    @property
    def full(self) -> bool:
        return len(self._kept) >= self._limit

    @property
    def oldest(self) -> Place:
        return self._kept[0][0]

    def wants(self, place: Place) -> bool:
        if self._before is not None and place >= self._before:
            return False
        if self.full and place < self.oldest:
            self.more = True
            return False
        return True

    def offer(self, place: Place, found: dict[str, Any]) -> None:
        if not self.wants(place):
            return
        heapq.heappush(self._kept, (place, found))
        if len(self._kept) > self._limit:
            heapq.heappop(self._kept)
            self.more = True

    def page(self) -> Page:
        following = self.oldest if self.full and self.more else None
        return Page([found for _, found in sorted(self._kept, key=_first)], following)

    def page_down_to(self, time: str) -> Page:
        """What was found before the search ended, as far as nothing between is missing."""
        whole = [each for each in self._kept if each[0].at > time]
        return Page([found for _, found in sorted(whole, key=_first)], Place(time, LAST, 0))


def _first(pair: tuple[Place, dict[str, Any]]) -> Place:
    return pair[0]


def _search(segment: Segment, asked: Query, kept: _Latest) -> None:
    for line in candidates(segment, asked):
        try:
            head = record.read_head(line)
            if head.kind in HIDDEN or not kept.wants(Place(head.at, segment.chain, head.n)):
                continue
            found = {"id": f"{segment.chain}:{head.n}", **record.read_record(line)}
        except record.Broken:
            continue
        if asked.holds(found):
            kept.offer(Place(head.at, segment.chain, head.n), found)


def _place(found: dict[str, Any]) -> Place:
    return Place(found["at"], str(found["id"]).partition(":")[0], found["n"])
