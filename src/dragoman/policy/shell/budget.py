"""How much of the disk is looked at in a second, for all acts together: the event loop waits for it."""

from __future__ import annotations

import time
from collections.abc import Callable

ENTRIES_A_SECOND = 200_000
"""Of all trees, about a fifth of the event loop's time; beyond it a folder may have anything in it, and it is asked."""


class Budget:
    """How many entries are looked at in a second, for all acts together: an agent may ask thousands of times."""

    def __init__(self, entries: int = ENTRIES_A_SECOND, clock: Callable[[], float] = time.monotonic) -> None:
        self._entries = entries
        self._clock = clock
        self._left = float(entries)
        self._at = clock()

    def left(self) -> int:
        now = self._clock()
        self._left = min(self._entries, self._left + max(0.0, now - self._at) * self._entries)
        self._at = now
        return int(self._left)

    def spend(self, entries: int) -> None:
        self._left -= entries


budget = Budget()
