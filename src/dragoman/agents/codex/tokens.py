"""The tokens of a turn of Codex, which makes several requests in one.

`thread/tokenUsage/updated` has the tokens of the last request (`last`) and of the whole thread (`total`). The same
figures may come twice, and a resumed thread begins with those of former turns: so a turn's are a difference of totals.
"""

from __future__ import annotations

from dragoman.agents.native.usage import count, difference
from dragoman.wire.json_types import JsonObject, as_object

NAMES = {
    "totalTokens": "totalTokens",
    "inputTokens": "inputTokens",
    "outputTokens": "outputTokens",
    "cachedReadTokens": "cachedInputTokens",
    "thoughtTokens": "reasoningOutputTokens",
}


class TurnTokens:
    def __init__(self) -> None:
        self._total: dict[str, float] | None = None
        """Of the thread, as told last."""
        self._before: dict[str, float] | None = None
        self._last: dict[str, float] = {}
        self._told = False

    def turn_begins(self) -> None:
        self._before, self._last, self._told = self._total, {}, False

    def read(self, usage: JsonObject) -> None:
        last, total = _counts(usage.get("last")), _counts(usage.get("total"))
        if total:
            if self._before is None:  # a thread of which nothing was told before its turn
                self._before = difference(total, last) if last else {}
            self._total = total
        elif last:  # without totals, each figure is a request's
            self._last = {name: self._last.get(name, 0) + value for name, value in last.items()}
        self._told = self._told or bool(last or total)

    def used(self) -> JsonObject:
        """ACP's `usage` of the turn so far; empty if nothing was told."""
        if not self._told:
            return {}
        used = self._last or difference(self._total or {}, self._before or {})
        return {name: int(value) for name, value in used.items()}


def _counts(told: object) -> dict[str, float]:
    figures = as_object(told)
    return {ours: count(figures.get(theirs)) for ours, theirs in NAMES.items()} if figures else {}
