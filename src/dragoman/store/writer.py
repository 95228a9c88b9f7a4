"""Appends to one journal, for the owner of its session.

Every call blocks, and only one thread at a time may use a writer. Each batch is written at a known offset, so that
repeating a write that failed, or whose outcome is unknown, overwrites it and never duplicates events.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import time

from msgspec import Struct

from dragoman.atomic_file import sync_data, sync_folder
from dragoman.gateway.ports.store import BadEvent, Done, OutcomeUnknown, SequenceGap, StoreError
from dragoman.store import format, limits, segments
from dragoman.store.failure import explain
from dragoman.wire.framing import LF


class Append(Struct):
    """An append that a thread writes."""

    first_seq: int
    events: Sequence[bytes]
    size: int
    done: Done
    outcome: StoreError | None = None


class Writer:
    def __init__(self, folder: Path, end: segments.End, epoch: int, *, durable: bool = False) -> None:
        """Append from `end` on. `durable`: events count as stored after `sync`."""
        self.folder = folder
        self.epoch = epoch
        self.next_seq = end.last_seq + 1
        self._descriptor = -1
        self._offset = end.offset
        if end.segment is not None:
            self._descriptor = os.open(end.segment.path, os.O_RDWR | os.O_CLOEXEC)
        self._safe = (self._offset, self.next_seq) if durable else None
        """The flushed end of the journal: offset in the segment, and next number. None unless `durable`."""
        self._spoilt = False
        """Whether there may be bytes after `_offset` that are no batch."""

    @property
    def last_seq(self) -> int:
        """The last event that counts as stored."""
        return (self._safe[1] if self._safe is not None else self.next_seq) - 1

    def write(self, first_seq: int, events: Sequence[bytes], ts: int | None = None) -> None:
        """Append `events`, dated now or at `ts` in milliseconds; none are appended if it raises a `StoreError`."""
        count, last_seq = len(events), self.next_seq - 1
        if first_seq != last_seq + 1:
            text = f"Event {first_seq} of session {self.folder.name} does not follow {last_seq}."
            raise SequenceGap(text, last_seq)
        for event in events:
            if LF in event:
                raise BadEvent("An event has a line feed in it; journal events are single lines.")
        lines = format.join(events)
        if ts is None:
            ts = int(time() * 1000)
        if len(lines) <= limits.BATCH_BYTES:
            parts = [format.describe(first_seq, count, lines, self.epoch, ts), lines]
        else:
            parts = _batches(first_seq, self.epoch, ts, events, len(lines))
        try:
            if self._descriptor < 0 or self._offset >= limits.SEGMENT_BYTES:
                self._begin_segment()
            if self._offset == 0:
                parts.insert(0, format.file_head(self.folder.name))
            if self._spoilt:
                os.ftruncate(self._descriptor, self._offset)
                self._spoilt = False
            size = len(parts[0]) + len(lines) if len(parts) == 2 else sum(map(len, parts))
            written = os.pwritev(self._descriptor, parts, self._offset)
            while written < size:  # a nearly full disk accepts a part, then fails
                rest = memoryview(b"".join(parts))[written:]
                written += os.pwrite(self._descriptor, rest, self._offset + written)
        except OSError as error:
            self._cut()
            raise explain(error, self.folder) from error
        self._offset += size
        self.next_seq += count

    def write_all(self, appends: Sequence[Append]) -> None:
        """Append one after the other, then flush all together if `durable`; sets the outcome of each."""
        for append in appends:
            try:
                self.write(append.first_seq, append.events)
            except StoreError as error:
                append.outcome = error
        try:
            self.sync()
        except StoreError as error:
            for append in appends:
                if append.first_seq > self.last_seq:
                    append.outcome = append.outcome or error

    def sync(self) -> None:
        """Flush to the disk if `durable`; if that fails, the events written since the last flush are removed."""
        if self._safe is None or self._descriptor < 0:
            return
        try:
            sync_data(self._descriptor)
        except OSError as error:
            failure = explain(error, self.folder)
            self._offset, self.next_seq = self._safe
            raise failure if self._cut() else OutcomeUnknown(str(failure)) from error
        self._safe = self._offset, self.next_seq

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    __del__ = close

    def _begin_segment(self) -> None:
        self.sync()
        path = self.folder / segments.name(self.next_seq, self.epoch)
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        self.close()
        self._descriptor, self._offset = descriptor, 0
        if self._safe is not None:
            self._safe = 0, self.next_seq
            sync_folder(self.folder)

    def _cut(self) -> bool:
        """Remove bytes after the last batch; if that fails, the next write tries again."""
        self._spoilt = True
        with suppress(OSError):
            os.ftruncate(self._descriptor, self._offset)
            self._spoilt = False
        return not self._spoilt


def _batches(first_seq: int, epoch: int, ts: int, events: Sequence[bytes], size: int) -> list[bytes]:
    """Split a large append into several batches, so that readers can read a part of it."""
    pieces = min(-(-size // limits.BATCH_BYTES), limits.MOST_BATCHES, len(events))
    count, behind = -(-len(events) // pieces), 0
    parts: list[bytes] = []
    for start in reversed(range(0, len(events), count)):
        some = events[start : start + count]
        lines = format.join(some)
        head = format.describe(first_seq + start, len(some), lines, epoch, ts, behind)
        behind += len(head) + len(lines)
        parts[:0] = [head, lines]
    return parts
