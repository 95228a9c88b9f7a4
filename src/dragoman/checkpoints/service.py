"""Checkpoints for the gateway: in threads, one after the other for each session."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from dragoman.config.sections.checkpoints import CheckpointsConfig
from dragoman.gateway.ports.checkpoints import (
    Changes,
    Checkpoint,
    CheckpointError,
    Mark,
    Restored,
    Restoring,
    Wish,
)

if TYPE_CHECKING:
    from dragoman.checkpoints.engine import Engine

log = logging.getLogger(__name__)

THREADS = 4
"""Calls at once: a project on a disk that hangs must not hold up the others."""
CLOSE_TIMEOUT = 5.0
"""Seconds that the end of the gateway waits for checkpoints under way."""

T = TypeVar("T")


class CheckpointService:
    """Implements the gateway's `Checkpoints`."""

    def __init__(self, folder: Path, limits: CheckpointsConfig) -> None:
        self._given = (folder, limits)
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="checkpoint")
        self._order: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._restoring: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @cached_property
    def _engine(self) -> Engine:
        from dragoman.checkpoints.engine import Engine  # with the first turn: an editor waits for the start

        return Engine(*self._given)

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

        return self._in_order(session_id, work)

    async def checkpoints(self, session_id: str) -> list[Checkpoint]:
        return await self._in_order(session_id, lambda tell: tell(self._engine.checkpoints(session_id)))

    async def changes(self, session_id: str, turn: int | None = None) -> Changes:
        return await self._in_order(session_id, lambda tell: tell(self._engine.changes(session_id, turn)))

    async def patch(self, session_id: str, turn: int | None = None) -> bytes:
        return await self._in_order(session_id, lambda tell: tell(self._engine.patch(session_id, turn)))

    def restore(self, session_id: str, folder: str, wish: Wish, act: Restoring) -> Awaitable[Restored]:
        if session_id in self._restoring:
            raise CheckpointError("Files of this session are being restored already.", "restoring")
        self._restoring.add(session_id)

        def work(tell: Callable[[Restored], None]) -> None:
            self._engine.restore(session_id, folder, wish, tell, act)

        restored = self._in_order(session_id, work)
        restored.add_done_callback(lambda _: self._restoring.discard(session_id))
        return restored

    async def delete(self, session_id: str) -> None:
        def work(tell: Callable[[None], None]) -> None:
            self._engine.delete(session_id)
            tell(None)

        await self._in_order(session_id, work)

    async def close(self) -> None:
        """Wait a moment for what is under way."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSE_TIMEOUT)
            self._engine.stop()  # Python waits for its threads at the end
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _in_order(self, session_id: str, work: Callable[[Callable[[T], None]], None]) -> asyncio.Future[T]:
        """Run `work` in a thread after the session's earlier work; returns what it tells, maybe before its end."""
        loop = asyncio.get_running_loop()
        told: asyncio.Future[T] = loop.create_future()

        def tell(result: T) -> None:
            loop.call_soon_threadsafe(_settle, told, result)

        order = self._order.get(session_id)
        if order is None:
            order = self._order[session_id] = asyncio.Lock()
        self._spawn(self._run(order, lambda: work(tell), told))
        return told

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


def _settle(told: asyncio.Future[T], result: T) -> None:
    if not told.done():
        told.set_result(result)
