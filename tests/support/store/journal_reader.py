"""Reads journals straight from their files, by the description in docs/explanation/store.md and not with the store."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Event:
    seq: int
    tag: str
    body: Any


def folder_of(home: Path, session: str) -> Path:
    return home / "journal" / session


def read_lines(home: Path, session: str) -> list[bytes]:
    """All events of a session as they are stored; fails if their numbers are not 1, 2, 3, … or anything is damaged."""
    found: list[bytes] = []
    files = sorted(folder_of(home, session).glob("*.log"))
    for file in files:
        first = file.stem.split("-")[0]
        assert int(first) == len(found) + 1, f"{file} follows event {len(found)}"
        data = file.read_bytes()
        head, _, data = data.partition(b"\n")
        assert not head or head == b"#dragoman journal 1 %b" % session.encode(), head
        while data:
            line, end, rest = data.partition(b"\n")
            if not end:
                break
            number, count, length, _, _, checksum = line.split(b" ")
            lines, data = rest[: int(length)], rest[int(length) :]
            if len(lines) < int(length):
                break  # its process is writing, or was killed while it was
            assert int(number[1:]) == len(found) + 1, f"batch {line!r} of {session} follows {len(found)}"
            assert int(checksum, 16) == zlib.crc32(line[:-8], zlib.crc32(lines)), (
                f"batch {line!r} of {session}"
            )
            events = lines.split(b"\n")[:-1]
            assert len(events) == int(count.partition(b"+")[0]), f"batch {line!r} has {len(events)} events"
            found += events
    return found


def read_journal(home: Path, session: str) -> list[Event]:
    """The same as what they say."""
    return [read_event(seq, line) for seq, line in enumerate(read_lines(home, session), 1)]


def read_event(seq: int, line: bytes) -> Event:
    return Event(seq, line[:1].decode(), json.loads(line[1:]))


def records(home: Path, session: str, kind: str) -> list[Any]:
    """What happened in a session beside its updates."""
    found = [event.body for event in read_journal(home, session) if event.tag == "R"]
    return [body for body in found if body["dragoman"] == kind]
