"""The segments of all chains, and the lines in them that a query may be about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import msgspec

from dragoman.audit import folder as places
from dragoman.audit import record
from dragoman.audit.read import Query

MOST_KNOWN = 10_000
"""Segments whose times are remembered."""
NEVER = "9999-12-31T23:59:59.999Z"
"""After every time."""
RAREST_FIRST = ("call", "session", "by", "tool", "decision", "kind", "agent")


@dataclass(frozen=True, slots=True)
class Segment:
    path: Path
    chain: str
    size: int
    begins: str
    """Time of its first record."""
    ends: str


def segments(folder: Path) -> list[Segment]:
    """Those of all chains, the one with the latest record first."""
    found: list[Segment] = []
    for chain in places.chains(folder):
        for path in places.segments(chain):
            with suppress(OSError):  # pruned meanwhile, or no file: the check tells
                size = path.stat().st_size
                if size:
                    found.append(Segment(path, chain.name, size, _begins(path), _ends(path, size)))
    return sorted(found, key=lambda each: (each.ends, each.chain, each.path.name), reverse=True)


@lru_cache(MOST_KNOWN)
def _begins(path: Path) -> str:
    """Time of the first record; empty if it cannot be read."""
    with suppress(record.Broken), places.open_regular(path) as file:
        return record.read_head(file.readline(places.LONGEST)).at
    return ""


@lru_cache(MOST_KNOWN)
def _ends(path: Path, size: int) -> str:
    """Time of the last record of a file that has this size; a later one, if it cannot be read."""
    with suppress(record.Broken):
        if (end := places.end_of_file(path)) is not None:
            return end.at
    return NEVER


def candidates(segment: Segment, asked: Query) -> Iterator[bytes]:
    """The whole lines that may match, the last one first: those with a value that the query asks for, else all."""
    with suppress(OSError), places.open_regular(segment.path) as file:
        data = file.read(places.LONGEST)
        text = _sought(asked)
        yield from _all(data) if text is None else _with(data, text)


def _sought(asked: Query) -> bytes | None:
    """A text that stands in every line that matches; None if there is none."""
    if asked.unmediated:
        return b'"unmediated"'
    for name in RAREST_FIRST:
        value = getattr(asked, name)
        if value is not None:
            return msgspec.json.encode(value)  # as records are encoded
    return None


def _all(data: bytes) -> Iterator[bytes]:
    lines = data.split(b"\n")
    lines.pop()  # nothing, or an append that was cut off
    while lines:
        yield lines.pop()


def _with(data: bytes, text: bytes) -> Iterator[bytes]:
    end = data.rfind(b"\n")
    while end > 0:
        place = data.rfind(text, 0, end)
        if place < 0:
            return
        start, stop = data.rfind(b"\n", 0, place) + 1, data.find(b"\n", place)
        yield data[start:stop]
        end = start - 1
