"""Tokens of requests to a model, as the answer to a prompt tells them (ACP's `usage`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Spent:
    input: int = 0
    """Cached ones included."""
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
        )

    @property
    def total(self) -> int:
        return self.input + self.output

    def usage(self) -> dict[str, Any]:
        """As ACP's `usage`; `totalTokens` says that cached tokens are a part of the input."""
        return {
            "inputTokens": self.input,
            "outputTokens": self.output,
            "cachedReadTokens": self.cache_read,
            "cachedWriteTokens": self.cache_write,
            "totalTokens": self.total,
        }
