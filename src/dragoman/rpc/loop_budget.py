"""Bounds the time per loop turn for reading frames of peers; frames beyond the budget wait for another turn.

One read can bring megabytes of frames of a few bytes each, and reading them all before anything else runs stops every
other client for seconds. So a reader takes a few frames at a time and checks the budget in between:

    read some ─ spent()? ─ no ─ read some …
                  └ yes ─ later(go_on), or `await wait_if_spent()`; the socket is not read meanwhile

All peers share the budget of a turn. Waiting readers run one after the other. After each of them the loop has as much
time for everything else as the reader and the work it started took: a flood gets at most half of the time.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from weakref import WeakKeyDictionary

from dragoman.wire import limits

AFTERMATH = 2
"""Loop turns after a reader that count as its time: work started by its frames begins in them."""


class LoopBudget:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], object]] = deque()
        self._counting = False
        """True while a budget runs; its end is scheduled for the end of this turn."""
        self._deadline = 0.0
        self._pacing = False
        """True while the next waiting reader is scheduled."""

    def spent(self) -> bool:
        """Whether the caller has to wait for another turn of the loop."""
        if not self._counting:
            self._begin()
            return False
        return time.perf_counter() >= self._deadline

    def later(self, work: Callable[[], object]) -> None:
        """Call `work` in a turn that has room for it."""
        self._waiting.append(work)
        if not self._pacing:
            self._pacing = True
            self._loop.call_soon(self._go_on)

    async def wait_if_spent(self) -> None:
        """Return at once while this turn of the loop has budget left, otherwise wait for a turn that has."""
        if self.spent():
            await self.wait_next_turn()

    async def wait_next_turn(self) -> None:
        """Wait for another turn, behind all waiting readers."""
        ready = asyncio.Event()
        self.later(ready.set)
        await ready.wait()

    def _begin(self) -> None:
        self._counting = True
        self._deadline = time.perf_counter() + limits.LOOP_BUDGET_SECONDS
        self._loop.call_soon(self._end)

    def _end(self) -> None:
        self._counting = False

    def _go_on(self) -> None:
        begun = time.perf_counter()
        if not self._counting:
            self._begin()
        self._deadline = begun + limits.LOOP_BUDGET_SECONDS
        self._waiting.popleft()()
        self._loop.call_soon(self._rest, begun, AFTERMATH)

    def _rest(self, begun: float, turns: int) -> None:
        if turns:
            self._loop.call_soon(self._rest, begun, turns - 1)
        elif self._waiting:
            taken = time.perf_counter() - begun
            self._loop.call_later(min(taken, limits.MAX_READER_PAUSE), self._go_on)
        else:
            self._pacing = False


_budgets: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopBudget] = WeakKeyDictionary()


def loop_budget() -> LoopBudget:
    """The budget of the running loop."""
    loop = asyncio.get_running_loop()
    budget = _budgets.get(loop)
    if budget is None:
        budget = _budgets[loop] = LoopBudget(loop)
    return budget
