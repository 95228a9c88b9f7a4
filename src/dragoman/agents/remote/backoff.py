"""Exponential backoff with jitter, so that clients that lost the same server do not reconnect at the same time."""

from __future__ import annotations

import asyncio
import random

FIRST = 0.2
LONGEST = 10.0
PATIENCE = 120.0
"""Seconds of trying before a connection is given up; the next prompt tries again."""


class Backoff:
    def __init__(self) -> None:
        self._next = FIRST
        self._until = asyncio.get_running_loop().time() + PATIENCE

    @property
    def over(self) -> bool:
        return asyncio.get_running_loop().time() > self._until

    async def wait(self) -> None:
        await asyncio.sleep(self._next * random.uniform(0.5, 1.5))
        self._next = min(2 * self._next, LONGEST)
