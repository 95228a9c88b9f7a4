"""Where the records of each session are in a segment, so that a question about one session does not read everything.

The process that writes a segment notes the places while it appends, and its audit thread stores them in a small file
beside the segment (`.seek`) when that is full. The file may be deleted at any time: a reader then makes it again.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from dragoman.atomic_file import replace_file
from dragoman.audit import record
from dragoman.audit.folder import LONGEST, open_regular, read_lines

SUFFIX = ".seek"
WORTH = 1 << 18
"""Bytes of a segment from which on the file is worth it: a smaller one is read as fast."""


class Seek(msgspec.Struct, frozen=True):
    """What a `.seek` file says about its segment."""

    size: int
    first: str
    """Time of the earliest record."""
    last: str
    sessions: dict[str, msgspec.Raw]
    """Offsets of the records of each session; decoded only for the one that is asked for."""

    def offsets(self, session: str) -> list[int]:
        found = self.sessions.get(session)
        return _offsets.decode(found) if found is not None else []


class _Span(msgspec.Struct, frozen=True):
    size: int
    first: str
    last: str


class Found(msgspec.Struct, frozen=True):
    """The times of a segment, and the places of one session."""

    first: str
    last: str
    offsets: list[int]


_SESSIONS = b',"sessions":{'
_span = msgspec.json.Decoder(_Span)
_offsets = msgspec.json.Decoder(list[int])
_decoder = msgspec.json.Decoder(Seek)


@dataclass(slots=True)
class Places:
    """The places of one segment while it is written or read."""

    first: str = ""
    last: str = ""
    sessions: dict[str, list[int]] = field(default_factory=dict)

    def add(self, at: str, session: object, offset: int) -> None:
        if not self.first or at < self.first:
            self.first = at
        if at > self.last:  # the clock may go back
            self.last = at
        if isinstance(session, str):
            self.sessions.setdefault(session, []).append(offset)

    def store(self, segment: Path, size: int) -> None:
        if not segment.exists():  # pruned meanwhile
            return
        facts = {"size": size, "first": self.first, "last": self.last, "sessions": self.sessions}
        with suppress(OSError):  # a folder that may only be read, a full disk: it is made again by a reader
            replace_file(segment.with_suffix(SUFFIX), msgspec.json.encode(facts))

    def is_stored(self, segment: Path, size: int) -> bool | None:
        """Whether what is stored about a segment is right; None if nothing is."""
        known = stored_seek(segment)
        if known is None:
            return None
        right = (known.size, known.first, known.last) == (size, self.first, self.last)
        return right and {name: known.offsets(name) for name in known.sessions} == self.sessions


def stored_seek(segment: Path) -> Seek | None:
    """What was stored about a segment; None if nothing was, or if the segment was written to since."""
    with suppress(OSError, *record.UNREADABLE):
        known = _decoder.decode(_read(segment.with_suffix(SUFFIX)))
        if known.size == segment.stat().st_size:
            return known
    return None


def stored_places(segment: Path, session: str | None) -> Found | None:
    """What was stored about a segment and one session; None as above.

    The file is searched, not decoded: there may be hundreds of segments, each with thousands of sessions.
    """
    with suppress(OSError, ValueError, *record.UNREADABLE):
        data = _read(segment.with_suffix(SUFFIX))
        end = data.index(_SESSIONS)
        told = _span.decode(data[:end] + b"}")
        if told.size != segment.stat().st_size:
            return None
        offsets: list[int] = []
        if session is not None:
            name = msgspec.json.encode(session) + b":["  # a quote inside of a name is escaped
            start = data.find(name, end)
            if start >= 0:
                start += len(name) - 1
                offsets = _offsets.decode(data[start : data.index(b"]", start) + 1])
        return Found(told.first, told.last, offsets)
    return None


def _read(path: Path) -> bytes:
    with open_regular(path) as file:
        return file.read(LONGEST)


def make_seek(segment: Path) -> Places:
    """Read a segment and store its places."""
    places, offset = Places(), 0
    with suppress(OSError), open_regular(segment) as file:
        for line in read_lines(file):
            if line.endswith(b"\n"):
                with suppress(record.Broken):
                    facts = record.read_record(line)
                    places.add(str(facts.get("at")), facts.get("session"), offset)
            offset += len(line)
        places.store(segment, offset)
    return places
