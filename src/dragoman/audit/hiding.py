"""Replaces secrets in records by `***`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

SHORTEST = 6
"""Characters of a secret; shorter values, such as `1` or `true`, would be found everywhere."""
MASK = "***"


class Hiding:
    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self.add(values)

    def add(self, values: Iterable[str]) -> None:
        self._values.update(value for value in values if len(value) >= SHORTEST)
        self._pattern = _any_of(self._values)

    def apply(self, facts: dict[str, Any], more: Iterable[str] = ()) -> dict[str, Any]:
        """The facts without these values and without `more`, which are those of this record alone."""
        own = {value for value in more if len(value) >= SHORTEST}
        pattern = _any_of(self._values | own) if own else self._pattern
        if pattern is None:
            return facts
        cleaned = _clean(facts, pattern)
        assert isinstance(cleaned, dict)
        return cleaned


def _any_of(values: Iterable[str]) -> re.Pattern[str] | None:
    ordered = sorted(values, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, ordered))) if ordered else None


def _clean(value: Any, pattern: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return pattern.sub(MASK, value)
    if isinstance(value, dict):
        return {_clean(name, pattern): _clean(item, pattern) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(item, pattern) for item in value]
    return value
