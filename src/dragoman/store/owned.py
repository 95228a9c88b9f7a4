"""A session that this process owns: its lock, the end of its journal, and its queued appends.

The event loop writes a small append by itself, in a few microseconds. Threads do what would hold up every other
session: an append of more than `INLINE_BYTES`, every append while the disk is slow, and the flush to the disk with
`sync = "full"`. Appends that arrive while a thread writes are queued and written together next.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from math import inf
from time import monotonic
from typing import TypeAlias

from dragoman.gateway.ports.store import Done, StoreError
from dragoman.store import limits
from dragoman.store.failure import explain
from dragoman.store.locks import SessionLock
from dragoman.store.writer import Writer

Group: TypeAlias = "list[tuple[Owned, int, list[bytes], Done]]"
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
        self.writes = 0
        """Number of writes by the event loop."""
        self._slow_write = -limits.QUICK_WRITES
        """Value of `writes` at the last slow one."""
        self._slow = 0

    def add(self, owned: Owned, first_seq: int, events: list[bytes], done: Done) -> None:
        self.backlog += _size(events)
        key = None if self.durable else owned
        idle = key not in self._queues
        self._queues.setdefault(key, []).append((owned, first_seq, events, done))
        if idle:
            self._begin(key)

    def loop_was_held(self) -> None:
        """Note a slow write of the event loop; one may be due to the scheduler, two in close succession to the disk."""
        if self.writes - self._slow_write < limits.QUICK_WRITES and not self.durable:
            self._slow, self.inline = limits.QUICK_WRITES, False
        self._slow_write = self.writes

    def took(self, seconds: float, size: int) -> None:
        """Note how long a thread took to write `size` bytes; called in the event loop."""
        if seconds > limits.SLOW_SECONDS + size / limits.SLOW_RATE:
            self._slow = limits.QUICK_WRITES
        elif self._slow:
            self._slow -= 1
        self.inline = not (self.durable or self._slow)

    def _begin(self, key: Owned | None) -> None:
        group = self._queues.pop(key)
        if group:
            self._queues[key] = []
            self.threads.submit(self._work, key, group)

    def _work(self, key: Owned | None, group: Group) -> None:
        """In a thread: write the group, its sessions in parallel, and flush each file once."""
        began = monotonic()
        appends: dict[Writer, list[tuple[int, list[bytes]]]] = {}
        for owned, first_seq, events, _ in group:
            appends.setdefault(owned.writer, []).append((first_seq, events))
        in_order = self.threads.map if len(appends) > 1 else map
        written = in_order(Writer.write_all, appends, appends.values())
        by_writer = {writer: iter(each) for writer, each in zip(appends, written, strict=True)}
        outcomes = [next(by_writer[owned.writer]) for owned, _, _, _ in group]
        self._loop.call_soon_threadsafe(self._answer, key, group, outcomes, monotonic() - began)

    def _answer(
        self, key: Owned | None, group: Group, outcomes: list[StoreError | None], seconds: float
    ) -> None:
        size = sum(_size(events) for _, _, events, _ in group)
        self.took(seconds, size)
        self.backlog -= size
        for (owned, _, _, done), outcome in zip(group, outcomes, strict=True):
            self._loop.call_soon(owned.answer, done, outcome)  # if one raises, the others still run
        self._begin(key)


def _size(events: list[bytes]) -> int:
    return sum(map(len, events)) + len(events) * limits.EVENT_OVERHEAD


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
            if self._waiting or not self._disk.inline or sum(map(len, events)) > limits.INLINE_BYTES:
                self._waiting += 1
                self._idle.clear()
                self._disk.add(self, first_seq, events, done)
                return True
            self._disk.writes += 1
            self.writer.write(first_seq, events)
            outcome = None
        except StoreError as error:
            outcome = error
        except OSError as error:
            outcome = explain(error, self.writer.folder)
        if monotonic() - began > limits.SLOW_SECONDS:
            self._disk.loop_was_held()
        done(outcome)
        return True

    def is_ours(self) -> bool:
        """Whether we still hold the lock beside the journal; once lost, it stays lost."""
        if self._looked > -inf:
            self._looked = monotonic() if self.lock.is_ours(self.epoch) else -inf
        return self._looked > -inf

    def answer(self, done: Done, outcome: StoreError | None) -> None:
        """Deliver the outcome of an append that a thread wrote."""
        self._waiting -= 1
        if not self._waiting:
            self._idle.set()
        done(outcome)

    async def drained(self) -> None:
        """Wait until no append of this session is queued or being written."""
        await self._idle.wait()

    def close(self) -> None:
        """Close the journal and release the lock; no append may be queued."""
        self.writer.close()
        self.lock.close()
