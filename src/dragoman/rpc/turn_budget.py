"""How much of one loop turn the bytes of peers may take; what is left over waits for another turn.

One read can bring megabytes of frames that are a few bytes long, and reading them all before anything else runs stops
every other client for seconds. So frames are read some at a time, and the reader asks in between:

    read some ─ spent()? ─ no ─ read some …
                  └ yes ─ later(go_on), or `await turn()`; and nothing more is read from the socket meanwhile

All peers share the budget of a turn. Those who wait go on one after the other, one in each turn.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from weakref import WeakKeyDictionary

from dragoman.wire import limits


class TurnBudget:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], object]] = deque()
        self._counting = False
        """The end of this turn is scheduled."""
        self._deadline = 0.0

    def spent(self) -> bool:
        """Whether the caller has to wait for another turn."""
        if not self._counting:
            self._begin()
            return False
        return time.perf_counter() >= self._deadline

    def later(self, work: Callable[[], object]) -> None:
        """Call `work` in a turn that has room for it."""
        self._waiting.append(work)
        if not self._counting:
            self._begin()

    async def turn(self) -> None:
        """Returns at once while this turn has room, otherwise when another one has."""
        if self.spent():
            ready = asyncio.Event()
            self.later(ready.set)
            await ready.wait()

    def _begin(self) -> None:
        self._counting = True
        self._deadline = time.perf_counter() + limits.TURN_SECONDS
        self._loop.call_soon(self._next)

    def _next(self) -> None:
        self._counting = False
        if self._waiting:
            self._begin()
            self._waiting.popleft()()


_budgets: WeakKeyDictionary[asyncio.AbstractEventLoop, TurnBudget] = WeakKeyDictionary()


def turn_budget() -> TurnBudget:
    """The one of the running loop."""
    loop = asyncio.get_running_loop()
    budget = _budgets.get(loop)
    if budget is None:
        budget = _budgets[loop] = TurnBudget(loop)
    return budget
