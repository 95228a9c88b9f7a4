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
from dragoman.store.writer import Append, Writer

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
        except OSError as error:
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
        await self._idle.wait()

    def close(self) -> None:
        """Close the journal and release the lock; no append may be queued."""
        self.writer.close()
        self.lock.close()
