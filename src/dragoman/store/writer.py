"""Appends to journals: who writes them, and how.

`Writer` appends to one journal. Every call blocks, and only one thread at a time may use a writer. Each batch is written
at a known offset, so that repeating a write that failed, or whose outcome is unknown, overwrites it and never duplicates
events.

`Owned` is a session that this process owns: its lock, its writer, its queued appends. The event loop writes a small
append by itself, in a few microseconds. Threads do what would hold up every other session: an append of more than
`INLINE_BYTES`, every append while the disk is slow, and the flush to the disk with `sync = "full"`. Appends that arrive
while a thread writes are queued and written together next (`Disk`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from math import inf
from pathlib import Path
from time import monotonic, time
from typing import TypeAlias
from zlib import crc32

from msgspec import Struct

from dragoman.atomic_file import OpenFile, sync_data, sync_folder
from dragoman.gateway.ports.store import BadEvent, Done, OutcomeUnknown, SequenceGap, StoreError
from dragoman.store import limits, segments
from dragoman.store.failure import explain
from dragoman.store.locks import SessionLock
from dragoman.wire.framing import LF
from dragoman.wire.timestamps import second


class Append(Struct):
    """An append that a thread writes."""

    first_seq: int
    events: Sequence[bytes]
    size: int
    done: Done
    outcome: StoreError | None = None


class Writer(OpenFile):
    def __init__(self, folder: Path, end: segments.End, epoch: int, *, durable: bool = False) -> None:
        """Append from `end` on. `durable`: events count as stored after `sync`."""
        self.folder = folder
        self.epoch = epoch
        self.next_seq = end.last_seq + 1
        if end.segment is not None:
            self.descriptor = os.open(end.segment.path, os.O_RDWR | os.O_CLOEXEC)
        self._offset = end.offset
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
        try:
            for event in events:
                if LF in event:
                    raise BadEvent("An event has a line feed in it; journal events are single lines.")
            lines = _join(events)
            if ts is None:
                ts = int(time() * 1000)
            if len(lines) <= limits.BATCH_BYTES:
                parts = [_describe(first_seq, count, lines, self.epoch, ts), lines]
            else:
                parts = _batches(first_seq, self.epoch, ts, events, len(lines))
            if self.descriptor < 0 or self._offset >= limits.SEGMENT_BYTES:
                self._begin_segment()
            if self._offset == 0:
                parts.insert(0, segments.file_head(self.folder.name))
            if self._spoilt:
                os.ftruncate(self.descriptor, self._offset)
                self._spoilt = False
            size = len(parts[0]) + len(lines) if len(parts) == 2 else sum(map(len, parts))
            written = os.pwritev(self.descriptor, parts, self._offset)
            while written < size:  # a nearly full disk accepts a part, then fails
                rest = memoryview(b"".join(parts))[written:]
                written += os.pwrite(self.descriptor, rest, self._offset + written)
        except StoreError:
            raise
        except Exception as error:  # also without memory, or by a bug of ours: the caller gets an outcome
            self._cut()
            raise explain(error, self.folder) from error
        self._offset += size
        self.next_seq += count

    def write_all(self, appends: Sequence[Append]) -> None:
        """Append one after the other, then flush all together if `durable`; sets the outcome of each."""
        for step, written in enumerate([*appends, None]):
            try:
                if written is not None:
                    self.write(written.first_seq, written.events)
                else:
                    self.sync()
            except StoreError as error:  # of its own, or of a flush, which removed what was written before
                for index, append in enumerate(appends[: step + 1]):
                    if index == step or append.first_seq >= self.next_seq:
                        append.outcome = append.outcome or error

    def sync(self) -> None:
        """Flush to the disk if `durable`; if that fails, the events written since the last flush are removed."""
        if self._safe is None or self.descriptor < 0:
            return
        try:
            sync_data(self.descriptor)
        except OSError as error:
            failure = explain(error, self.folder)
            self._offset, self.next_seq = self._safe
            raise failure if self._cut() else OutcomeUnknown(str(failure)) from error
        self._safe = self._offset, self.next_seq

    def _begin_segment(self) -> None:
        self.sync()
        path = self.folder / segments.name(self.next_seq, self.epoch)
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        self.close()
        self.descriptor, self._offset = descriptor, 0
        if self._safe is not None:
            self._safe = 0, self.next_seq
            sync_folder(self.folder)

    def _cut(self) -> bool:
        """Remove bytes after the last batch; if that fails, the next write tries again."""
        self._spoilt = True
        with suppress(OSError):
            os.ftruncate(self.descriptor, self._offset)
            self._spoilt = False
        return not self._spoilt


def _batches(first_seq: int, epoch: int, ts: int, events: Sequence[bytes], size: int) -> list[bytes]:
    """Split a large append into several batches, so that readers can read a part of it."""
    pieces = min(-(-size // limits.BATCH_BYTES), limits.MOST_BATCHES, len(events))
    count, behind = -(-len(events) // pieces), 0
    parts: list[bytes] = []
    for start in reversed(range(0, len(events), count)):
        some = events[start : start + count]
        lines = _join(some)
        head = _describe(first_seq + start, len(some), lines, epoch, ts, behind)
        behind += len(head) + len(lines)
        parts[:0] = [head, lines]
    return parts


def _join(events: Sequence[bytes]) -> bytes:
    """The event lines of a batch."""
    return b"\n".join([*events, b""])  # one copy: a line feed added afterwards is a second


def _describe(first_seq: int, count: int, lines: bytes, epoch: int, ts: int, more: int = 0) -> bytes:
    """The description of a batch, the line above its event lines; `ts` in milliseconds."""
    plus, moment = b"+%d" % more if more else b"", second(ts // 1000).encode()
    sealed = b"#%d %d%b %d %d %b.%03dZ " % (first_seq, count, plus, len(lines), epoch, moment, ts % 1000)
    return b"%b%08x\n" % (sealed, crc32(sealed, crc32(lines)))


Group: TypeAlias = "list[tuple[Owned, Append]]"
"""Appends that a thread writes together."""


class Disk:
    """State shared by the sessions of one store: queued appends, and whether the disk is slow at present.

    Each session has its own queue; with `durable` all share one, so that their files are flushed together. A queue is
    written one group at a time: appends that arrive meanwhile are the next group.
    """

    def __init__(self, *, durable: bool) -> None:
        self.durable = durable
        """Appends are flushed to the disk before they count as stored."""
        self.inline = not durable
        """Whether the event loop writes small appends by itself."""
        self.backlog = 0
        self.threads = ThreadPoolExecutor(limits.WRITERS, thread_name_prefix="dragoman-writer")
        self._loop = asyncio.get_running_loop()
        self._queues: dict[Owned | None, Group] = {}
        """Appends that wait for the group in progress, by session (None: all sessions)."""
        self._since_slow = limits.QUICK_WRITES
        """Number of writes since the last slow one."""

    def add(self, owned: Owned, append: Append) -> None:
        self.backlog += append.size
        key = None if self.durable else owned
        idle = key not in self._queues
        self._queues.setdefault(key, []).append((owned, append))
        if idle:
            self._begin(key)

    def took(self, seconds: float, size: int) -> None:
        """Note how long a write took. One that is slow may be due to the scheduler, two close together to the disk."""
        self._since_slow += 1
        settled = self._since_slow >= limits.QUICK_WRITES
        if seconds > limits.SLOW_SECONDS + size / limits.SLOW_RATE:
            self._since_slow = 0
            self.inline = self.inline and settled
        elif settled:
            self.inline = not self.durable

    def _begin(self, key: Owned | None) -> None:
        group = self._queues.pop(key)
        if group:
            self._queues[key] = []
            self.threads.submit(self._work, key, group)

    def _work(self, key: Owned | None, group: Group) -> None:
        """In a thread: write the group, its sessions in parallel, and flush each file once."""
        began = monotonic()
        appends: dict[Writer, list[Append]] = {}
        for owned, append in group:
            appends.setdefault(owned.writer, []).append(append)
        at_once = self.threads.map if len(appends) > 1 else map
        list(at_once(Writer.write_all, appends, appends.values()))
        self._loop.call_soon_threadsafe(self._answer, key, group, monotonic() - began)

    def _answer(self, key: Owned | None, group: Group, seconds: float) -> None:
        size = sum(append.size for _, append in group)
        self.took(seconds, size)
        self.backlog -= size
        for owned, append in group:
            self._loop.call_soon(owned.answer, append)  # if one raises, the others still run
        self._begin(key)


class Owned:
    """An owned session; `append` is called in the event loop, and `done` is called there in the same order."""

    def __init__(self, lock: SessionLock, writer: Writer, disk: Disk) -> None:
        self.lock = lock
        self.writer = writer
        self.epoch = writer.epoch
        self._disk = disk
        self._looked = monotonic()
        """When the session was last checked to be ours; `-inf` once it is lost."""
        self._waiting = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def append(self, first_seq: int, events: list[bytes], done: Done) -> bool:
        """Append events; returns False and does nothing if the session is not ours any more."""
        began = monotonic()
        try:
            if began - self._looked > limits.LEASE_SECONDS and not self.is_ours():
                return False
            size = sum(map(len, events))
            if self._waiting or not self._disk.inline or size > limits.INLINE_BYTES:
                self._waiting += 1
                self._idle.clear()
                self._disk.add(self, Append(first_seq, events, size, done))
                return True
            self.writer.write(first_seq, events)
            outcome = None
        except StoreError as error:
            outcome = error
        except OSError as error:  # of the look whether it is ours
            outcome = explain(error, self.writer.folder)
        self._disk.took(monotonic() - began, 0)
        done(outcome)
        return True

    def is_ours(self) -> bool:
        """Whether we still hold the lock beside the journal; once lost, it stays lost."""
        if self._looked > -inf:
            self._looked = monotonic() if self.lock.is_ours(self.epoch) else -inf
        return self._looked > -inf

    def answer(self, append: Append) -> None:
        """Deliver the outcome of an append that a thread wrote."""
        self._waiting -= 1
        if not self._waiting:
            self._idle.set()
        append.done(append.outcome)

    async def drained(self) -> None:
        """Wait until no append of this session is queued or being written."""
        while self._waiting:  # an answer may be followed by another append before this task runs
            await self._idle.wait()

    def close(self) -> None:
        """Close the journal and release the lock; no append may be queued."""
        self.writer.close()
        self.lock.close()
