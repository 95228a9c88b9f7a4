"""The segments of all chains, and the lines in them that a query may be about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from dragoman.audit import folder as places
from dragoman.audit.read import Query
from dragoman.wire.timestamps import timestamp

COARSE = 1000
"""Milliseconds by which the time of a file may be behind that of its last record."""
RAREST_FIRST = ("call", "session", "by", "tool", "decision", "kind", "agent")


@dataclass(frozen=True, slots=True)
class Segment:
    path: Path
    chain: str
    size: int
    changed: str
    """A time after which it was not written to."""


def segments(folder: Path) -> list[Segment]:
    """Those of all chains, the last changed first."""
    found: list[Segment] = []
    for chain in places.chains(folder):
        for path in places.segments(chain):
            with suppress(FileNotFoundError):  # pruned meanwhile
                about = path.stat()
                changed = timestamp(about.st_mtime_ns // 1_000_000 + COARSE)
                found.append(Segment(path, chain.name, about.st_size, changed))
    return sorted(found, key=lambda each: (each.changed, each.chain, each.path.name), reverse=True)


def candidates(segment: Segment, asked: Query) -> Iterator[bytes]:
    """The whole lines that may match, the last one first: those with a value that the query asks for, else all."""
    with suppress(FileNotFoundError):
        data = segment.path.read_bytes()
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
