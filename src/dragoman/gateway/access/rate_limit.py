"""Rate limit of one token: token buckets for requests and bytes, shared by all its connections."""

from __future__ import annotations

import time
from collections.abc import Callable

from dragoman.config.model import QuotaConfig
from dragoman.wire.errors import too_many

MINUTE = 60.0


class RateLimit:
    """Two token buckets, each with a capacity of one minute; a limit of 0 means none."""

    def __init__(self, quota: QuotaConfig, clock: Callable[[], float] = time.monotonic) -> None:
        self.quota = quota
        self._clock = clock
        self._then = clock()
        self._requests = float(quota.requests_per_minute)
        self._bytes = float(quota.bytes_per_minute)

    def request(self, size: int = 0) -> None:
        """Count one request; raises when there were too many."""
        quota = self.quota
        if not quota.requests_per_minute and not quota.bytes_per_minute:
            return
        self._fill()
        if quota.requests_per_minute and self._requests < 1:
            wait = (1 - self._requests) * MINUTE / quota.requests_per_minute
            raise too_many(f"Only {quota.requests_per_minute} requests a minute", wait, "requests_per_minute")
        if quota.bytes_per_minute and self._bytes <= 0:
            wait = (1 - self._bytes) * MINUTE / quota.bytes_per_minute
            raise too_many(f"Only {quota.bytes_per_minute} bytes a minute", wait, "bytes_per_minute")
        self._requests -= 1
        self._bytes -= size

    def received(self, size: int) -> None:
        """Count bytes of a request after it was admitted; an excess delays the next requests."""
        self._bytes -= size

    def _fill(self) -> None:
        now = self._clock()
        share, self._then = (now - self._then) / MINUTE, now
        quota = self.quota
        self._requests = min(
            self._requests + share * quota.requests_per_minute, float(quota.requests_per_minute)
        )
        self._bytes = min(self._bytes + share * quota.bytes_per_minute, float(quota.bytes_per_minute))
