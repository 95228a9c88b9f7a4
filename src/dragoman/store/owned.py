"""A session that this process owns: its lock, the end of its journal, and the appends on their way there.

The event loop writes a small append by itself, in a few microseconds. Three things go to a thread, because they would
hold up every other session: an append of more than `INLINE_BYTES`, every append while the disk is slow, and the flush
to the disk of `sync = "full"`. What comes while a thread writes waits for it and goes with the next write.
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
    """What the sessions of one store share: appends for threads, and whether the disk is slow at present.

    Each session has a queue of its own; with `durable` all share one, so that their files are flushed together. A queue
    is written a group at a time: what comes while one is under way is the next.
    """

    def __init__(self, *, durable: bool) -> None:
        self.durable = durable
        """Appends are flushed to the disk before they count as stored."""
        self.inline = not durable
        """The event loop writes by itself."""
        self.backlog = 0
        self.threads = ThreadPoolExecutor(limits.WRITERS, thread_name_prefix="dragoman-writer")
        self._loop = asyncio.get_running_loop()
        self._queues: dict[Owned | None, Group] = {}
        """What waits for the group that is under way, by session."""
        self.writes = 0
        """Of the event loop."""
        self._slow_write = -limits.QUICK_WRITES
        """Which of them was the last slow one."""
        self._slow = 0

    def add(self, owned: Owned, first_seq: int, events: list[bytes], done: Done) -> None:
        self.backlog += _size(events)
        key = None if self.durable else owned
        idle = key not in self._queues
        self._queues.setdefault(key, []).append((owned, first_seq, events, done))
        if idle:
            self._begin(key)

    def loop_was_held(self) -> None:
        """A write of the event loop took long. One may be the scheduler's fault, two close together are the disk's."""
        if self.writes - self._slow_write < limits.QUICK_WRITES and not self.durable:
            self._slow, self.inline = limits.QUICK_WRITES, False
        self._slow_write = self.writes

    def took(self, seconds: float, size: int) -> None:
        """A thread's write of so many bytes took this long; called in the event loop."""
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
        """In a thread: write all, sessions beside each other, and flush each file once."""
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
            self._loop.call_soon(owned.answer, done, outcome)  # one that raises does not keep back the others
        self._begin(key)


def _size(events: list[bytes]) -> int:
    return sum(map(len, events)) + len(events) * limits.EVENT_OVERHEAD


class Owned:
    """Appends come from the event loop; `done` is called there, in their order."""

    def __init__(self, lock: SessionLock, writer: Writer, disk: Disk) -> None:
        self.lock = lock
        self.writer = writer
        self.epoch = writer.epoch
        self._disk = disk
        self._looked = monotonic()
        """When it was last certain that the session is ours; never again once it is lost."""
        self._waiting = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def append(self, first_seq: int, events: list[bytes], done: Done) -> bool:
        """False if the session is not ours any more: nothing happens then."""
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
        """Whether the lock is still the one beside the journal; once it is not, it never is again."""
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
        """Wait until no thread works for this session."""
        await self._idle.wait()

    def close(self) -> None:
        """Give the lock back; nothing may be under way."""
        self.writer.close()
        self.lock.close()
