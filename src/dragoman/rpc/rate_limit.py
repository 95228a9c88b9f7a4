"""A rate limit for actions that cost a peer less than they cost the gateway."""

from __future__ import annotations

import time
from collections.abc import Callable


class RateLimit:
    """Allows `limit` actions per window of `seconds`."""

    def __init__(self, limit: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._seconds = seconds
        self._clock = clock
        self._count = 0
        self._end = clock() + seconds

    def take(self) -> bool:
        """Count one action; False when it is above the limit."""
        self._count += 1
        if self._count <= self._limit:
            return True
        now = self._clock()
        if now < self._end:
            return False
        self._end, self._count = now + self._seconds, 1
        return True

    def earn(self, count: int) -> None:
        """Allow `count` more, up to ten times the limit."""
        self._count = max(self._count - count, -9 * self._limit)

    @property
    def wait(self) -> float:
        """Seconds until the next window begins."""
        return max(0.0, self._end - self._clock())
