"""A bound for the bytes of requests that several peers have in flight together."""

from __future__ import annotations


class ByteBudget:
    """Bytes that several peers may have in flight together; a request larger than the budget fits when it is alone."""

    def __init__(self, most: int, whole: ByteBudget | None = None) -> None:
        """`whole` is the larger budget that this one is a share of: bytes taken here count there too."""
        self._most = most
        self._whole = whole
        self.used = 0

    def take(self, size: int) -> bool:
        if self.used and self.used + size > self._most:
            return False
        if self._whole is not None and not self._whole.take(size):
            return False
        self.used += size
        return True

    def give(self, size: int) -> None:
        self.used -= size
        if self._whole is not None:
            self._whole.give(size)
