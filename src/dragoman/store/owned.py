"""A session that this process owns: its lock, the end of its journal, and the appends on their way there.

The event loop writes by itself: a small append is in the kernel's hands after a few microseconds, which is all that the
death of a process can ask for. Three things belong into a thread instead, because they would hold up every other
session: an append of more than `INLINE_BYTES`, every append while the disk is slow, and the flush to the disk that
`sync = "full"` asks for. What comes while a thread writes waits for it and goes with the next write.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from math import inf
from typing import TypeAlias

from dragoman.gateway.ports.store import Done, StoreError
from dragoman.store import limits
from dragoman.store.failure import explain
from dragoman.store.locks import SessionLock
from dragoman.store.writer import Writer

Outcome: TypeAlias = StoreError | None


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
        self._queues: dict[Owned | None, list[tuple[Owned, int, list[bytes], Done]]] = {}
        """What waits for the group that is under way, by session."""
        self._slow = 0

    def add(self, owned: Owned, first_seq: int, events: list[bytes], done: Done) -> None:
        self.backlog += _size(events)
        key = None if self.durable else owned
        idle = key not in self._queues
        self._queues.setdefault(key, []).append((owned, first_seq, events, done))
        if idle:
            self._begin(key)

    def took(self, seconds: float, size: int = 0) -> None:
        """A write of so many bytes took this long; called in the event loop."""
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

    def _work(self, key: Owned | None, group: list[tuple[Owned, int, list[bytes], Done]]) -> None:
        """In a thread: write all, sessions beside each other, and flush each file once."""
        began = time.perf_counter()
        appends: dict[Writer, list[tuple[int, list[bytes]]]] = {}
        for owned, first_seq, events, _ in group:
            appends.setdefault(owned.writer, []).append((first_seq, events))
        in_order = self.threads.map if len(appends) > 1 else map
        written = in_order(Writer.write_all, appends, appends.values())
        outcomes = {writer: iter(each) for writer, each in zip(appends, written, strict=True)}
        told = [(*append, next(outcomes[append[0].writer])) for append in group]
        self._loop.call_soon_threadsafe(self._answer, key, told, time.perf_counter() - began)

    def _answer(
        self,
        key: Owned | None,
        told: list[tuple[Owned, int, list[bytes], Done, Outcome]],
        seconds: float,
    ) -> None:
        size = sum(_size(events) for _, _, events, _, _ in told)
        self.took(seconds, size)
        self.backlog -= size
        for owned, _, _, done, outcome in told:
            self._loop.call_soon(owned.answer, done, outcome)  # one that raises does not keep back the others
        self._begin(key)


def _size(events: list[bytes]) -> int:
    return sum(map(len, events)) + len(events) * limits.EVENT_OVERHEAD


class Owned:
    """Appends come from the event loop; `done` is called there, in their order."""

    def __init__(self, lock: SessionLock, writer: Writer, disk: Disk) -> None:
        self.lock = lock
        self.writer = writer
        self._disk = disk
        self._looked = time.monotonic()
        """When it was last certain that the session is ours."""
        self._lost = False
        self._waiting = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def append(self, first_seq: int, events: list[bytes], done: Done) -> bool:
        """False if the session is not ours any more: nothing happens then."""
        began = time.monotonic()
        if began - self._looked > limits.LEASE_SECONDS:
            try:
                if not self.is_ours():
                    return False
            except OSError as error:
                done(explain(error, self.writer.folder))
                return True
        disk = self._disk
        if self._waiting or not disk.inline or sum(map(len, events)) > limits.INLINE_BYTES:
            self._waiting += 1
            self._idle.clear()
            disk.add(self, first_seq, events, done)
            return True
        outcome: Outcome = None
        try:
            self.writer.write(first_seq, events)
        except StoreError as error:
            outcome = error
        seconds = time.monotonic() - began
        if seconds > limits.SLOW_SECONDS:
            disk.took(seconds)
        done(outcome)
        return True

    def is_ours(self) -> bool:
        """Whether the lock is still the one beside the journal; once it is not, it never is again."""
        self._lost = self._lost or not self.lock.is_ours(self.writer.epoch)
        self._looked = -inf if self._lost else time.monotonic()
        return not self._lost

    def answer(self, done: Done, outcome: Outcome) -> None:
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
