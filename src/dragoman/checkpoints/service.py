"""Checkpoints for the gateway: in threads, one after the other for each session."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from dragoman.config.sections.checkpoints import CheckpointsConfig
from dragoman.gateway.ports.checkpoints import (
    Changes,
    Checkpoint,
    CheckpointError,
    Checkpoints,
    Mark,
    Restored,
    Restoring,
    Touched,
    Wish,
)
from dragoman.gateway.ports.worktrees import RecordedTree

if TYPE_CHECKING:
    from dragoman.checkpoints.engine import Engine
    from dragoman.checkpoints.watching.known import Known

log = logging.getLogger(__name__)

THREADS = 4
"""Calls at once: a project on a disk that hangs must not hold up the others."""
WRITE_AFTER = 0.05
"""Seconds after the last checkpoint without changes until it is written: those of a few short turns make one commit."""
WRITE_LATEST = 1.0
"""Seconds after the first one: a thread that writes delays messages a little, so quick turns do not wake it often."""
BATCH = 1000
"""Checkpoints in one commit; more wait for the disk."""
CLOSE_TIMEOUT = 5.0
"""Seconds that the end of the gateway waits for checkpoints under way."""

T = TypeVar("T")


@dataclass
class Batch:
    """Checkpoints of a session between which nothing changed, not written yet."""

    folder: str
    known: Known
    failed: Callable[[CheckpointError], None]
    marks: list[tuple[Mark, float]] = field(default_factory=list)


class CheckpointService(Checkpoints):
    """The gateway's checkpoints, in a folder."""

    def __init__(self, folder: Path, limits: CheckpointsConfig) -> None:
        self._given = (folder, limits)
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="checkpoint")
        self._order: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._restoring: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._changing: dict[str, asyncio.Future[Any]] = {}
        """What records or restores each session's project now."""
        self._batches: dict[str, Batch] = {}

    @cached_property
    def _engine(self) -> Engine:
        from dragoman.checkpoints.engine import Engine  # with the first turn: an editor waits for the start

        return Engine(*self._given, watching=True)

    def records(self, folder: str) -> bool:
        return folder.startswith("/")

    def restoring(self, session_id: str) -> bool:
        return session_id in self._restoring

    async def prepare(self, session_id: str, folder: str) -> None:
        def work(tell: Callable[[None], None]) -> None:
            self._engine.prepare(session_id, folder)
            tell(None)

        await self._in_order(session_id, work)

    def record(self, session_id: str, folder: str, mark: Mark) -> Awaitable[Checkpoint]:
        def work(tell: Callable[[Checkpoint], None]) -> None:
            with self._engine.record(session_id, folder, mark) as checkpoint:
                tell(checkpoint)

        return self._change(session_id, work)

    def record_unchanged(
        self, session_id: str, folder: str, mark: Mark, failed: Callable[[CheckpointError], None]
    ) -> bool:
        if session_id in self._changing or "_engine" not in self.__dict__:
            return False
        batch = self._batches.get(session_id)
        known = batch.known if batch is not None and batch.folder == folder else None
        if known is None or not known.covers(mark):
            known = self._engine.unchanged(session_id, folder, mark)
        if known is None:
            return False
        if batch is None:
            batch = self._batches[session_id] = Batch(folder, known, failed)
            asyncio.get_running_loop().call_later(WRITE_AFTER, self._write_soon, session_id, batch)
        elif batch.known is not known or len(batch.marks) >= BATCH:
            return False
        batch.marks.append((mark, time.time()))
        return True

    def _write_soon(self, session_id: str, batch: Batch) -> None:
        """Write the batch when its session rests, or the batch is old."""
        if self._batches.get(session_id) is not batch:
            return  # written meanwhile
        now = time.time()
        if now - batch.marks[-1][1] < WRITE_AFTER and 0 <= now - batch.marks[0][1] < WRITE_LATEST:
            asyncio.get_running_loop().call_later(WRITE_AFTER, self._write_soon, session_id, batch)
        else:
            self._write(session_id)

    def _write(self, session_id: str) -> None:
        if session_id in self._batches:
            self._in_order(session_id, _nothing_more)

    async def checkpoints(self, session_id: str) -> list[Checkpoint]:
        return await self._in_order(session_id, lambda tell: tell(self._engine.checkpoints(session_id)))

    async def recorded(self, session_id: str, turn: int) -> RecordedTree:
        return await self._in_order(session_id, lambda tell: tell(self._engine.recorded(session_id, turn)))

    async def changes(self, session_id: str, turn: int | None = None) -> Changes:
        return await self._in_order(session_id, lambda tell: tell(self._engine.changes(session_id, turn)))

    async def patch(self, session_id: str, turn: int | None = None) -> bytes:
        return await self._in_order(session_id, lambda tell: tell(self._engine.patch(session_id, turn)))

    async def touched(self, session_id: str, turn: int | None = None) -> Touched:
        return await self._in_order(session_id, lambda tell: tell(self._engine.touched(session_id, turn)))

    def restore(self, session_id: str, folder: str, wish: Wish, act: Restoring) -> Awaitable[Restored]:
        if session_id in self._restoring:
            raise CheckpointError("Files of this session are being restored already.", "restoring")
        self._restoring.add(session_id)

        def work(tell: Callable[[Restored], None]) -> None:
            self._engine.restore(session_id, folder, wish, tell, act)

        restored = self._change(session_id, work)
        restored.add_done_callback(lambda _: self._restoring.discard(session_id))
        return restored

    async def delete(self, session_id: str) -> None:
        def work(tell: Callable[[None], None]) -> None:
            self._engine.delete(session_id)
            tell(None)

        await self._in_order(session_id, work)

    async def close(self) -> None:
        """Wait a moment for what is under way."""
        for session_id in list(self._batches):
            self._write(session_id)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSE_TIMEOUT)
        if "_engine" in self.__dict__:
            self._engine.stop()  # Python waits for its threads at the end
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _change(self, session_id: str, work: Callable[[Callable[[T], None]], None]) -> asyncio.Future[T]:
        """Like `_in_order`, for work after which the session's last checkpoint is another one."""
        told = self._changing[session_id] = self._in_order(session_id, work)

        def forget(_: object) -> None:
            if self._changing.get(session_id) is told:
                del self._changing[session_id]

        told.add_done_callback(forget)
        return told

    def _in_order(self, session_id: str, work: Callable[[Callable[[T], None]], None]) -> asyncio.Future[T]:
        """Run `work` in a thread after the session's earlier work; returns what it tells, maybe before its end."""
        loop = asyncio.get_running_loop()
        told: asyncio.Future[T] = loop.create_future()

        def tell(result: T) -> None:
            loop.call_soon_threadsafe(_settle, told, result)

        batch = self._batches.pop(session_id, None)

        def whole() -> None:
            if batch is not None:
                self._append(loop, session_id, batch)
            work(tell)

        order = self._order.get(session_id)
        if order is None:
            order = self._order[session_id] = asyncio.Lock()
        self._spawn(self._run(order, whole, told))
        return told

    def _append(self, loop: asyncio.AbstractEventLoop, session_id: str, batch: Batch) -> None:
        try:
            self._engine.append(session_id, batch.folder, batch.known, batch.marks)
        except CheckpointError as error:
            loop.call_soon_threadsafe(batch.failed, error)

    async def _run(self, order: asyncio.Lock, work: Callable[[], None], told: asyncio.Future[Any]) -> None:
        async with order:
            try:
                await asyncio.get_running_loop().run_in_executor(self._pool, work)
            except CheckpointError as error:
                if not told.done():
                    told.set_exception(error)
                    return
                log.warning("a checkpoint was made, but the next one takes longer: %s", error)
            except Exception as error:
                log.exception("checkpoint failed")
                if not told.done():
                    told.set_exception(CheckpointError(f"Internal error in checkpoints: {error!r}"))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _nothing_more(tell: Callable[[None], None]) -> None:
    tell(None)


def _settle(told: asyncio.Future[T], result: T) -> None:
    if not told.done():
        told.set_result(result)
