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
        known = _decoder.decode(segment.with_suffix(SUFFIX).read_bytes())
        if known.size == segment.stat().st_size:
            return known
    return None


def make_seek(segment: Path) -> Places:
    """Read a segment and store its places."""
    places, offset = Places(), 0
    with segment.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                with suppress(record.Broken):
                    facts = record.read_record(line)
                    places.add(str(facts.get("at")), facts.get("session"), offset)
            offset += len(line)
    places.store(segment, offset)
    return places
