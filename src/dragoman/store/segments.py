"""The files of one journal, read: which event is where, what is damaged, where the journal ends.

A journal is a folder of segments, named by the number of their first event and the epoch of their owner
(`000000000017-2.log`). An owner that finds the session not given back begins a segment of its own: a process that only
believes itself the owner writes to another file, and what it writes there from the number on with which the next segment
begins is not part of the journal. Events before the first segment were pruned. After a break, where the journal may be
without what it once ended with, a segment is begun at once and named so (`000000000017-1795000000-break.log`).

What cannot be trusted is never handed out as events: in its place is a row that says which numbers are lost. At the end
of the last segment the same means that a write was cut off, or is under way.
"""

from __future__ import annotations

import os
import re
import sys
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct, structs

from dragoman.gateway.ports.store import Row, SchemaTooNew, SessionRecord
from dragoman.store import format, limits

SUFFIX = ".log"
_BREAK = "-break"
_NAME = re.compile(rf"(\d+)-(\d+)({_BREAK})?{re.escape(SUFFIX)}")


class Segment(Struct, frozen=True):
    first_seq: int
    epoch: int
    path: Path
    until: int = sys.maxsize
    """The last event that counts: the next segment begins behind it."""
    broken: int = 0
    """Epoch of the break with which it begins; 0 if there is none."""


class End(Struct, frozen=True):
    """Where a journal ends."""

    first_seq: int = 1
    """Of the journal: the oldest event that is kept."""
    last_seq: int = 0
    epoch: int = 0
    """Of its last segment."""
    segment: Segment | None = None
    """The last one; None if there is no journal."""
    offset: int = 0
    """The first byte behind the last whole batch."""
    torn: int = 0
    """Bytes behind it that are no whole batch."""


def name(first_seq: int, epoch: int, *, broken: bool = False) -> str:
    return f"{first_seq:012d}-{epoch}{_BREAK if broken else ''}{SUFFIX}"


def begin(folder: Path, first_seq: int, epoch: int, *, broken: bool = False) -> None:
    """Let an empty segment say that the journal goes on with this number."""
    (folder / name(first_seq, epoch, broken=broken)).touch(mode=0o600)


def segments(folder: Path) -> list[Segment]:
    """Those that make up the journal, in order; empty if there is none."""
    found: list[Segment] = []
    highest = 0
    for first_seq, epoch, broken, file in sorted(_files(folder)):
        if epoch < highest:
            continue  # of a former owner that does not know it
        highest = epoch
        if found and found[-1].first_seq == first_seq:
            broken = broken or found.pop().broken  # the same: nothing in it counts
        if found:
            found[-1] = structs.replace(found[-1], until=first_seq - 1)
        found.append(Segment(first_seq, epoch, folder / file, broken=broken))
    return found


def _files(folder: Path) -> Iterator[tuple[int, int, int, str]]:
    try:
        names = [path.name for path in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return
    for match in filter(None, map(_NAME.fullmatch, names)):
        epoch = int(match[2])
        yield int(match[1]), epoch, epoch if match[3] else 0, match[0]


def common_seq(folder: Path, epoch: int, seq: int) -> int:
    """See `Journal.common_seq`. What a reader was shown before a break may be lost."""
    breaks = [segment.first_seq - 1 for segment in segments(folder) if segment.broken > epoch]
    return min([seq, *breaks])


def disk_bytes(folder: Path) -> int:
    """Of all segments; 0 for a folder that cannot be read."""
    try:
        return sum(segment.path.stat().st_size for segment in segments(folder) if segment.path.exists())
    except OSError:
        return 0


def empty(folder: Path, record: SessionRecord) -> None:
    """Remove all segments, behind the session's lock; numbers go on where they were.

    An empty segment with the next number comes first, then the old ones go from the oldest on: whenever this is
    interrupted, what is left is the end of the journal.
    """
    found = segments(folder)
    epoch = max([record.epoch, *(segment.epoch for segment in found)])
    if found and found[-1].first_seq <= record.last_seq:
        begin(folder, record.last_seq + 1, epoch)
    for segment in found:
        if segment.first_seq <= record.last_seq:
            segment.path.unlink(missing_ok=True)


class Reader:
    """Reads journals of any session; used by several threads at once."""

    def __init__(self) -> None:
        self._bookmarks: dict[tuple[Path, int], int] = {}
        """Where in a segment the batch with an event begins, for readers that go on where they stopped."""
        self._ends: dict[Path, int] = {}
        """The last event of a segment that was found when its end was looked for."""

    def read(self, folder: Path, after_seq: int, max_bytes: int) -> list[Row]:
        """Rows from `after_seq` + 1 on, whole rows until `max_bytes` is reached."""
        rows: list[Row] = []
        size, wanted = 0, after_seq + 1
        found = segments(folder)
        first = max(bisect_right([segment.first_seq for segment in found], wanted) - 1, 0)
        for segment in found[first:]:
            place: tuple[int, int] | None = None
            for row, end in self._rows(segment, wanted, max_bytes):
                place = row.last_seq + 1, end
                part = row if row.first_seq >= wanted else trim(row, wanted, row.last_seq)
                if part is not None:
                    rows.append(part)
                    size += len(part.data)
                if size >= max_bytes:
                    break
            if place is not None:
                self._remember(segment, *place)
            if size >= max_bytes:
                break
        return rows

    def _remember(self, segment: Segment, next_seq: int, offset: int) -> None:
        if len(self._bookmarks) >= limits.BOOKMARKS:
            self._bookmarks.clear()
            self._ends.clear()
        self._bookmarks[segment.path, next_seq] = offset

    def read_before(self, folder: Path, before_seq: int, limit: int) -> list[Row]:
        """The last `limit` events before `before_seq`, oldest first; fewer when they are large."""
        kept: list[Row] = []
        size = 0
        for segment in reversed(segments(folder)):
            rows = self._rows(segment, 1, limits.READ_BYTES) if segment.first_seq < before_seq else ()
            for row, _ in reversed(list(rows)):
                last_seq = min(row.last_seq, before_seq - 1)
                part = trim(row, last_seq - limit + 1, last_seq)
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
        last_seq = self._ends.pop(last.path, last.first_seq - 1)
        offset = self._bookmarks.get((last.path, last_seq + 1), 0)
        for row, place in self._rows(last, last_seq + 1, limits.READ_BYTES):
            last_seq, offset = row.last_seq, place
        try:
            torn = last.path.stat().st_size - offset
        except FileNotFoundError:
            return self.end(folder)  # pruned meanwhile
        if torn < 0:  # shorter than it was
            self._bookmarks.clear()
            return self.end(folder)
        self._ends[last.path] = last_seq
        self._remember(last, last_seq + 1, offset)
        return End(found[0].first_seq, last_seq, last.epoch, last, offset, torn)

    def _rows(self, segment: Segment, wanted: int, ahead: int) -> Iterator[tuple[Row, int]]:
        """What counts of a segment, each row with the place behind it; from event `wanted` on if its place is known.

        Numbers that are missing before the next segment are a lost row.
        """
        expected, offset = segment.first_seq, 0
        try:
            with segment.path.open("rb", buffering=0) as file:
                for row, offset in self._batches(_Window(file.fileno(), ahead), segment, wanted):
                    part = row if row.last_seq <= segment.until else trim(row, 1, segment.until)
                    if part is None:
                        break
                    expected = row.last_seq + 1
                    yield part, offset
        except FileNotFoundError:
            return  # pruned meanwhile
        if expected <= segment.until < sys.maxsize:
            yield lost(expected, segment.until), offset

    def _batches(self, window: _Window, segment: Segment, wanted: int) -> Iterator[tuple[Row, int]]:
        offset, expected = self._bookmarks.get((segment.path, wanted), 0), wanted
        if offset and window.size == offset:
            return
        if not offset or format.read_batch(window.bytes, offset, expected) is None:
            offset, expected = _start(window, segment.path), segment.first_seq
        while True:
            batch = format.read_batch(window.bytes, offset, expected)
            if batch is not None and batch.row is not None:
                row, offset = batch.row, offset + batch.size
                if batch.more and not window.bytes(offset + batch.more - 1, 1):
                    return  # the rest of the append was cut off
            else:
                found = format.find_batch(window.bytes(offset, sys.maxsize), expected)
                if found is None and batch is not None and window.bytes(offset + batch.size - 1, 1):
                    found = batch.size, expected + batch.count  # it was written, and is not what it was
                if found is None:
                    return
                offset += found[0]
                if found[1] == expected:
                    continue
                row = lost(expected, found[1] - 1)
            expected = row.last_seq + 1
            yield row, offset


class _Window:
    """A part of a file in memory, read ahead."""

    def __init__(self, descriptor: int, ahead: int) -> None:
        self._descriptor = descriptor
        self._ahead = max(ahead, format.LONGEST_HEAD)
        self._base = 0
        self._data = b""

    @property
    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def bytes(self, offset: int, length: int) -> bytes:
        """Fewer at the end of the file."""
        start = offset - self._base
        if start < 0 or start + length > len(self._data):
            left = max(self.size - offset, 0)
            self._data = os.pread(self._descriptor, min(max(length, self._ahead), left), offset)
            self._base, start = offset, 0
        return self._data[start : start + length]


def _start(window: _Window, path: Path) -> int:
    """Behind the first line of a segment; 0 where that is missing or damaged, so that the rest is looked at."""
    start = window.bytes(0, format.LONGEST_HEAD)
    version = format.file_version(start)
    if version is not None and version > format.VERSION:
        raise SchemaTooNew(
            f"{path} was written by a newer Dragoman (format {version}, this one knows {format.VERSION}). "
            "It was left as it is. Upgrade Dragoman to use it."
        )
    return start.index(b"\n") + 1 if version is not None else 0


def lost(first_seq: int, last_seq: int) -> Row:
    """In the place of events that are damaged or missing."""
    return Row(first_seq, 0, last_seq - first_seq + 1, b"", damaged=True)


def trim(row: Row, first: int, last: int) -> Row | None:
    """The part of a row from event `first` to event `last`, None if there is none."""
    if row.first_seq >= first and row.last_seq <= last:
        return row
    begin, end = max(row.first_seq, first), min(row.last_seq, last)
    if begin > end:
        return None
    if row.damaged:
        return lost(begin, end)
    events = row.events()[begin - row.first_seq : end - row.first_seq + 1]
    return Row(begin, row.ts, len(events), b"\n".join(events), row.epoch)
