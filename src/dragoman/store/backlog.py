"""How much is queued and not yet stored, with a high and a low water mark."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.store import limits


class Backlog:
    """Counts bytes in the event loop's thread alone, so it needs no lock."""

    def __init__(self, high: int = limits.BACKLOG_HIGH, low: int = limits.BACKLOG_LOW) -> None:
        self.bytes = 0
        self.congested = False
        self.on_drained: Callable[[], None] | None = None
        self._high = high
        self._low = low

    def add(self, size: int) -> None:
        self.bytes += size
        if self.bytes > self._high:
            self.congested = True

    def remove(self, size: int) -> None:
        self.bytes -= size

    def tell(self) -> None:
        """Call `on_drained` if the level fell below the low mark; after a group, not amid it."""
        if self.congested and self.bytes <= self._low:
            self.congested = False
            if self.on_drained is not None:
                self.on_drained()
