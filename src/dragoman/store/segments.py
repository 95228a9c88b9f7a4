"""The format of journals, and a reader that finds events, damage, and the end of a journal.

    #dragoman journal 1 dgm_k3vq…                            the first line of a file: format version and session
    #17 3 412 2 2026-11-17T03:31:02.123Z 9f3c2a11            first number, count, length, epoch, time, checksum
    U{"jsonrpc":"2.0","method":"session/update",…}           one event per line, three in this batch

A file holds batches of events, each below a line that describes it. The length is that of the event lines with their
line feeds. The checksum (CRC-32) covers the event lines, then the description up to the checksum. A count such as
`3+5120` means that 5120 bytes of the same append follow this batch: if the file ends before them, the whole append is
ignored. A reader finds batches by these lengths, never by a `#`.

A journal is a folder of such files, its segments, named by the number of their first event and the epoch of their owner
(`000000000017-2.log`). Events in a segment from the number on with which the next one begins were written by a former
owner and are not part of the journal. Events before the first segment were pruned. A segment after a break, where the
journal may have lost its end, has `break` in its name (`000000000017-1795000000-break.log`).

Damaged bytes are never returned as events: a row in their place says which numbers are lost. At the end of the last
segment they are a write that was cut off or is in progress.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, TypeAlias
from zlib import crc32

from msgspec import Struct, structs

from dragoman.gateway.ports.store import Row, SessionRecord
from dragoman.store import limits
from dragoman.store.failure import too_new
from dragoman.wire.timestamps import milliseconds

VERSION = 1
LONGEST_HEAD = 160
"""Maximum bytes of a description: five numbers of up to twenty digits, a time, a checksum."""

_FIRST = re.compile(rb"#dragoman journal (\d{1,20})(?: .*)?\n")
_HEAD = re.compile(rb"#(\d{1,20}) (\d{1,20})(?:\+(\d{1,20}))? (\d{1,20}) (\d{1,20}) (\S{1,30}) [0-9a-f]{8}\n")

SUFFIX = ".log"
_BREAK = "-break"
NAME = re.compile(rf"(\d+)-(\d+)({_BREAK})?{re.escape(SUFFIX)}")

Place: TypeAlias = tuple[int, int]
"""A position in a segment: an event number and the offset of its batch; 0 before the file's first line."""

Batch: TypeAlias = tuple[Row, int, int]
"""A batch as its description declares it: its events (a lost row if they are incomplete or do not match the checksum),
its size in bytes with the description, and how many bytes of the same append come after it."""

Read: TypeAlias = Callable[[int, int], bytes]
"""Reads a file: (offset, length) to bytes, fewer at the end of the file."""


class Segment(Struct, frozen=True):
    first_seq: int
    epoch: int
    path: Path
    until: int = sys.maxsize
    """The last event that is part of the journal: the next segment begins after it."""
    broken: int = 0
    """Epoch of the break at which the segment begins; 0 if there is none."""


class End(Struct, frozen=True):
    """Where a journal ends."""

    first_seq: int = 1
    """The oldest stored event of the journal."""
    last_seq: int = 0
    epoch: int = 0
    """Epoch of the last segment."""
    segment: Segment | None = None
    """The last segment; None if there is no journal."""
    offset: int = 0
    """The first byte after the last valid batch."""
    torn: int = 0
    """Bytes after `offset`, which are no valid batch."""


def name(first_seq: int, epoch: int, *, broken: bool = False) -> str:
    return f"{first_seq:012d}-{epoch}{_BREAK if broken else ''}{SUFFIX}"


def file_head(session_id: str) -> bytes:
    return b"#dragoman journal %d %b\n" % (VERSION, session_id.encode())


def begin(folder: Path, first_seq: int, epoch: int, *, broken: bool = False) -> None:
    """Create an empty segment: the journal continues with event `first_seq`."""
    (folder / name(first_seq, epoch, broken=broken)).touch(mode=0o600)


def segments(folder: Path) -> list[Segment]:
    """The segments of a journal, in order; empty if there is no journal.

    An entry with a segment's name that is neither a file nor a link to one counts as missing: opening a pipe blocks.
    """
    try:
        with os.scandir(folder) as entries:
            named = [match for entry in entries if (match := NAME.fullmatch(entry.name)) and entry.is_file()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    matches = [(int(match[1]), int(match[2]), match) for match in named]
    found: list[Segment] = []
    highest = 0
    for first_seq, epoch, match in sorted(matches, key=lambda each: (*each[:2], each[2][0])):
        if epoch < highest:
            continue  # by a former owner, unaware of its loss
        highest, broken = epoch, epoch if match[3] else 0
        if found and found[-1].first_seq == first_seq:
            broken = broken or found.pop().broken  # same start: no event of the former one counts
        if found:
            found[-1] = structs.replace(found[-1], until=first_seq - 1)
        found.append(Segment(first_seq, epoch, folder / match[0], broken=broken))
    return found


def empty(folder: Path, record: SessionRecord) -> None:
    """Remove all segments; the caller holds the session's lock. Event numbers continue.

    An empty segment with the next number is created first, then the old ones are removed, oldest first: after an
    interruption the rest is still the end of the journal.
    """
    found = segments(folder)
    epoch = max([record.epoch, *(segment.epoch for segment in found)])
    if found and found[-1].first_seq <= record.last_seq:
        begin(folder, record.last_seq + 1, epoch)
    for segment in found:
        if segment.first_seq <= record.last_seq:
            segment.path.unlink(missing_ok=True)


class Reader:
    """Reads the journals of all sessions; safe for several threads at once."""

    def __init__(self) -> None:
        self._bookmarks: dict[tuple[Path, int], Place] = {}
        """By segment and the event wanted next: positions of readers that continue where they stopped."""

    def read(self, folder: Path, after_seq: int, max_bytes: int) -> list[Row]:
        """Rows from `after_seq` + 1 on, whole rows until `max_bytes` is reached."""
        rows: list[Row] = []
        size, wanted = 0, after_seq + 1
        for segment in segments(folder):
            if segment.until < wanted or size >= max_bytes:
                continue
            place = self._bookmarks.get((segment.path, wanted), (segment.first_seq, 0))
            for row, offset in _rows(segment, place):
                place = row.last_seq + 1, offset
                part = row.part(wanted, row.last_seq)
                if part is not None:
                    rows.append(part)
                    size += len(part.data)
                if size >= max_bytes:
                    break
            self._remember(segment, place[0], place)
        return rows

    def read_before(self, folder: Path, before_seq: int, limit: int) -> list[Row]:
        """The last `limit` events before `before_seq`, oldest first; fewer when they are large."""
        kept: list[Row] = []
        size = 0
        for segment in reversed(segments(folder)):
            rows = _rows(segment, (segment.first_seq, 0)) if segment.first_seq < before_seq else ()
            for row, _ in reversed(list(rows)):
                last_seq = min(row.last_seq, before_seq - 1)
                part = row.part(last_seq - limit + 1, last_seq)
                if part is not None:
                    kept.append(part)
                    limit, size = limit - part.count, size + len(part.data)
                if limit <= 0 or size >= limits.PAGE_BACK_BYTES:
                    return kept[::-1]
        return kept[::-1]

    def end(self, folder: Path) -> End:
        found = segments(folder)
        if not found:
            return End()
        last = found[-1]
        place = self._bookmarks.get((last.path, sys.maxsize), (last.first_seq, 0))
        for row, behind in _rows(last, place):
            place = row.last_seq + 1, behind
        next_seq, offset = place
        size = -1
        with suppress(FileNotFoundError):
            size = last.path.stat().st_size
        if size < offset:  # pruned or shortened meanwhile
            self._bookmarks.clear()
            return self.end(folder)
        self._remember(last, sys.maxsize, place)
        return End(found[0].first_seq, next_seq - 1, last.epoch, last, offset, size - offset)

    def _remember(self, segment: Segment, wanted: int, place: Place) -> None:
        if len(self._bookmarks) >= limits.BOOKMARKS:
            self._bookmarks.clear()
        self._bookmarks[segment.path, wanted] = place


def _rows(segment: Segment, place: Place) -> Iterator[tuple[Row, int]]:
    """The valid rows of a segment from a position on, each with the offset after it.

    Numbers missing before the next segment become a lost row.
    """
    expected, offset = place
    try:
        with segment.path.open("rb", buffering=limits.READ_BYTES) as file:
            for row, offset in _batches(file, segment, place):
                part = row.part(1, segment.until)
                if part is None:
                    break
                expected = row.last_seq + 1
                yield part, offset
    except FileNotFoundError:
        return  # pruned meanwhile
    if expected <= segment.until < sys.maxsize:
        yield Row.lost(expected, segment.until), offset


def _batches(file: IO[bytes], segment: Segment, place: Place) -> Iterator[tuple[Row, int]]:
    size = os.fstat(file.fileno()).st_size

    def read(offset: int, length: int) -> bytes:
        file.seek(offset)
        return file.read(max(min(length, size - offset), 0))

    expected, offset = place
    if 0 < offset == size:
        return
    if not offset or _read_batch(read, offset, expected) is None:
        expected, offset = segment.first_seq, _start(read(0, LONGEST_HEAD), segment.path)
    while True:
        batch = _read_batch(read, offset, expected)
        if batch is not None and not batch[0].damaged:
            row, length, more = batch
            offset += length
            if offset + more > size:
                return  # the rest of the append was cut off
        else:
            found = _find_batch(read(offset, size), expected)
            if found is None and batch is not None and offset + batch[1] <= size:
                found = batch[1], batch[0].last_seq + 1  # complete, but damaged
            if found is None:
                return
            offset += found[0]
            if found[1] == expected:
                continue
            row = Row.lost(expected, found[1] - 1)
        expected = row.last_seq + 1
        yield row, offset


def _start(head: bytes, path: Path) -> int:
    """The offset after the first line of a segment; 0 if that line is missing or damaged."""
    match = _FIRST.match(head)
    if match is not None and int(match[1]) > VERSION:
        raise too_new(path, int(match[1]), VERSION)
    return match.end() if match is not None else 0


def _read_batch(read: Read, offset: int, first_seq: int) -> Batch | None:
    """The batch at `offset` that begins with event `first_seq`; None if none is described there."""
    match = _HEAD.match(read(offset, LONGEST_HEAD))
    if match is None or int(match[1]) != first_seq:
        return None
    count, length = int(match[2]), int(match[4])
    if not 0 < count <= length:
        return None
    head, lines = match[0], read(offset + match.end(), length)
    whole = len(lines) == length and b"%08x\n" % crc32(head[:-9], crc32(lines)) == head[-9:]
    row = Row.lost(first_seq, first_seq + count - 1)
    if whole and lines[-1:] == b"\n" and lines.count(b"\n") == count:  # may differ in a forged batch
        row = Row(
            first_seq, milliseconds(match[6].decode(errors="replace")), count, lines[:-1], int(match[5])
        )
    return row, len(head) + length, int(match[3] or 0)


def _find_batch(data: bytes, first_seq: int) -> tuple[int, int] | None:
    """Offset and first event of the next valid batch that begins with event `first_seq` or a later one."""
    for match in _HEAD.finditer(data):
        seq = int(match[1])
        if seq >= first_seq and (match.start() == 0 or data[match.start() - 1] == 10):
            batch = _read_batch(lambda offset, length: data[offset : offset + length], match.start(), seq)
            if batch is not None and not batch[0].damaged:
                return match.start(), seq
    return None
