"""How much of one loop turn the bytes of peers may take; what is left over waits for another turn.

One read can bring megabytes of frames that are a few bytes long, and reading them all before anything else runs stops
every other client for seconds. So whoever reads frames does it some at a time, and asks in between:

    read some ─ spent()? ─ no ─ read some …
                  └ yes ─ later(go_on), or `await turn()`; and nothing more is read from the socket meanwhile

All peers share the budget of a turn. Those who wait go on one after the other, and after each of them the loop has as
long for everything else as its frames took, with what they started: a flood gets half of the time at most.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from weakref import WeakKeyDictionary

from dragoman.wire import limits

AFTERMATH = 2
"""Loop turns in which what a peer's frames started begins to run."""


class TurnBudget:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], object]] = deque()
        self._counting = False
        """The end of this turn is scheduled."""
        self._deadline = 0.0
        self._pacing = False
        """Whoever waits goes on when it is time."""

    def spent(self) -> bool:
        """Whether whoever asks has to wait for another turn."""
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

    async def turn(self) -> None:
        """Returns at once while this turn has room, otherwise when another one has."""
        if self.spent():
            await self.next_turn()

    async def next_turn(self) -> None:
        """Wait for another turn, behind everybody who waits for one."""
        ready = asyncio.Event()
        self.later(ready.set)
        await ready.wait()

    def _begin(self) -> None:
        self._counting = True
        self._deadline = time.perf_counter() + limits.TURN_SECONDS
        self._loop.call_soon(self._end)

    def _end(self) -> None:
        self._counting = False

    def _go_on(self) -> None:
        begun = time.perf_counter()
        if not self._counting:
            self._begin()
        self._deadline = begun + limits.TURN_SECONDS
        self._waiting.popleft()()
        self._loop.call_soon(self._rest, begun, AFTERMATH)

    def _rest(self, begun: float, turns: int) -> None:
        if turns:
            self._loop.call_soon(self._rest, begun, turns - 1)
        elif self._waiting:
            taken = time.perf_counter() - begun
            self._loop.call_later(min(taken, limits.MAX_TURN_PAUSE), self._go_on)
        else:
            self._pacing = False


_budgets: WeakKeyDictionary[asyncio.AbstractEventLoop, TurnBudget] = WeakKeyDictionary()


def turn_budget() -> TurnBudget:
    """The one of the running loop."""
    loop = asyncio.get_running_loop()
    budget = _budgets.get(loop)
    if budget is None:
        budget = _budgets[loop] = TurnBudget(loop)
    return budget
