"""An event loop whose clock, threads and delays are simulated: the same seed gives the same run.

Nothing here waits. Time passes only in `pass_time`, which jumps from timer to timer. Work for threads runs in the loop
itself, some turns after it was handed over, and its result arrives some turns later still. Each callback belongs to
the simulated process in whose context it was scheduled; those of a killed process never run.
"""

from __future__ import annotations

import asyncio
import heapq
import random
import sys
import time
from asyncio import events
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from typing import TYPE_CHECKING, Any, Protocol
from unittest.mock import patch
from weakref import WeakSet

MAX_TURNS = 200_000
"""Turns of the loop without a rest after which it is taken to run in circles."""


class Owner(Protocol):
    dead: bool


PROCESS: ContextVar[Owner | None] = ContextVar("simulated_process", default=None)
"""The simulated process that the running code belongs to."""


if TYPE_CHECKING:
    BaseLoop = Any  # what asyncio itself calls in a loop is not in its stubs
else:
    BaseLoop = asyncio.BaseEventLoop


class Stuck(AssertionError):
    """The loop does not come to rest."""


class SimulatedLoop(BaseLoop):  # type: ignore[misc]
    def __init__(self, seed: int, most_delay: int) -> None:
        """`most_delay`: turns that a message or the work of a thread takes at most."""
        super().__init__()
        self.random = random.Random(seed)
        self.errors: list[str] = []
        """What reached the loop's exception handler."""
        self._now = 1000.0
        self.most_delay = most_delay
        self._selector = self
        self._queues: dict[object, deque[Callable[[], None]]] = {}
        self._tasks_by_process: dict[Owner | None, WeakSet[asyncio.Task[Any]]] = {}
        self.set_exception_handler(self._note)

    # -- driving

    def turns(self, count: int) -> None:
        """Run the loop that many times, or until it rests."""
        with self.running():
            for _ in range(count):
                if not self._ready:
                    return
                self._run_once()

    def rest(self) -> None:
        """Run the loop until only timers are left."""
        with self.running():
            for _ in range(MAX_TURNS):
                if not self._ready and not self._is_due(self._now):
                    return
                self._run_once()
        raise Stuck(f"{MAX_TURNS} turns of the loop, and it still has work")

    def pass_time(self, seconds: float) -> None:
        until = self._now + seconds
        self.rest()
        while self._is_due(until):
            self._now = max(self._now, self._scheduled[0].when())
            self.rest()
        self._now = until

    def delay(self) -> int:
        return self.random.randint(0, self.most_delay)

    def after_turns(self, turns: int, action: Callable[[], None], context: Context) -> None:
        if turns <= 0:
            self.call_soon(action, context=context)
        else:
            self.call_soon(self.after_turns, turns - 1, action, context, context=context)

    def _is_due(self, moment: float) -> bool:
        while self._scheduled and self._scheduled[0].cancelled():
            heapq.heappop(self._scheduled)
            self._timer_cancelled_count -= 1
        return bool(self._scheduled) and self._scheduled[0].when() <= moment

    @contextmanager
    def running(self) -> Iterator[None]:
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(
            firstiter=self._asyncgen_firstiter_hook, finalizer=self._asyncgen_finalizer_hook
        )
        events._set_running_loop(self)
        try:
            with (
                patch.object(time, "monotonic", self.time),
                patch("dragoman.store.writer.monotonic", self.time),
            ):
                yield
        finally:
            events._set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)

    # -- what asyncio asks for

    def time(self) -> float:
        return self._now

    def select(self, timeout: float | None) -> list[object]:
        return []

    def _process_events(self, event_list: list[object]) -> None:
        pass

    def _check_closed(self) -> None:
        """Do nothing: what a killed process left may be collected after the end."""

    def _write_to_self(self) -> None:
        pass

    def call_soon(
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        context = copy_context() if context is None else context  # an empty one is false, too
        handle: asyncio.Handle = super().call_soon(
            self._unless_dead, context.get(PROCESS), callback, args, context=context
        )
        return handle

    call_soon_threadsafe = call_soon  # there are no threads

    def call_at(
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        context = copy_context() if context is None else context
        handle: asyncio.TimerHandle = super().call_at(
            when, self._unless_dead, context.get(PROCESS), callback, args, context=context
        )
        return handle

    @staticmethod
    def _unless_dead(process: Owner | None, callback: Callable[..., Any], args: tuple[Any, ...]) -> None:
        if process is None or not process.dead:
            callback(*args)

    def _note(self, loop: object, facts: dict[str, Any]) -> None:
        self.errors.append(f"{facts.get('message')}: {facts.get('exception')!r}")

    # -- threads

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        if getattr(executor, "_shutdown", False):
            raise RuntimeError("cannot schedule new futures after shutdown")
        future: asyncio.Future[Any] = self.create_future()
        context = copy_context()

        def work() -> None:
            if future.cancelled():
                return
            try:
                result, error = self.perform(func, *args), None
            except BaseException as failure:
                result, error = None, failure
            self.after_turns(self.delay(), lambda: deliver(result, error), context)

        def deliver(result: Any, error: BaseException | None) -> None:
            if future.cancelled():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        if getattr(executor, "_max_workers", 0) == 1:
            self._in_order(executor, work, context)
        else:
            self.after_turns(self.delay(), work, context)
        return future

    def perform(self, work: Callable[..., Any], *args: Any) -> Any:
        """Do the work of a thread; it takes no time."""
        return work(*args)

    def create_task(
        self, coro: Any, *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[Any]:
        context = copy_context() if context is None else context
        task: asyncio.Task[Any] = super().create_task(coro, name=name, context=context)
        self._tasks_by_process.setdefault(context.get(PROCESS), WeakSet()).add(task)
        return task

    def tasks_of(self, process: Owner | None) -> list[asyncio.Task[Any]]:
        return [task for task in self._tasks_by_process.get(process, ()) if not task.done()]

    def _in_order(self, key: object, work: Callable[[], None], context: Context) -> None:
        """Run the work of a thread that does one thing after the other."""
        queue = self._queues.setdefault(key, deque())

        def first() -> None:
            queue[0]()
            queue.popleft()
            if queue:
                self.after_turns(self.delay(), first, context)

        queue.append(work)
        if len(queue) == 1:
            self.after_turns(self.delay(), first, context)


class SimulatedExecutor:
    """In the place of a `ThreadPoolExecutor` whose work reports by `call_soon_threadsafe`."""

    def __init__(self, workers: int, thread_name_prefix: str = "") -> None:
        self.map = map

    def submit(self, work: Callable[..., None], *args: Any) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        loop.after_turns(loop.delay(), lambda: work(*args), copy_context())

    def shutdown(self, wait: bool = True) -> None:
        pass
