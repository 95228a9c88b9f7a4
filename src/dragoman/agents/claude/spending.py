"""What a turn of `claude` cost, by model: its results have sums, subagents included.

A process that resumes a session counts on from the sums of the one before, if that could store them (2.1.325: one that
was killed could not). So a resumed process is asked for its sums (`get_usage`) before its first turn.
"""

from __future__ import annotations

from dragoman.agents.native.usage import count, difference
from dragoman.wire.json_types import JsonObject, as_object

NAMES = {
    "inputTokens": "inputTokens",
    "outputTokens": "outputTokens",
    "cachedReadTokens": "cacheReadInputTokens",
    "cachedWriteTokens": "cacheCreationInputTokens",
}
COST = "cost"


class Spending:
    """Of one process."""

    def __init__(self) -> None:
        self._models: dict[str, dict[str, float]] = {}
        self._cost = 0.0
        self._counts_on = False
        """From sums that are not known yet."""

    def resume(self) -> None:
        """The process resumes a session: its sums begin with those that `begin_with` tells."""
        self._counts_on = True

    def begin_with(self, usage: JsonObject) -> None:
        """Take the answer to `get_usage`; one that has no sums, or comes after the first result, changes nothing."""
        session = as_object(usage.get("session"))
        if self._counts_on and "model_usage" in session:
            self._counts_on = False
            self._models = _by_model(session["model_usage"])
            self._cost = _amount(session.get("total_cost_usd"))

    def read(self, result: JsonObject) -> list[JsonObject]:
        """What each model was used for since the last result; empty if the result does not say it by model."""
        told = _by_model(result.get("modelUsage"))
        whole, self._cost = self._cost, _amount(result.get("total_cost_usd"))
        if self._counts_on:
            self._counts_on, self._models = False, told
            return _turn_alone(result, None)
        if not told:
            return _turn_alone(result, difference({COST: self._cost}, {COST: whole})[COST])
        parts = []
        for model, counts in told.items():
            used = difference(counts, self._models.get(model, {}))
            if any(used.values()):
                parts.append(_part(used, model))
        self._models.update(told)
        return parts


def _turn_alone(result: JsonObject, cost: float | None) -> list[JsonObject]:
    """The tokens of the turn's own requests and its cost, for results whose sums by model are of no use.

    Without a cost the ledger takes the difference to what the session cost before.
    """
    usage = as_object(result.get("usage"))
    if not usage or "total_cost_usd" not in result:
        return []
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    used: dict[str, float] = {
        ours: count(usage.get(theirs)) for ours, theirs in zip(NAMES, names, strict=True)
    }
    models = list(as_object(result.get("modelUsage")))
    if cost is not None:
        used[COST] = cost
    return [_part(used, models[0] if len(models) == 1 else None)]


def _part(used: dict[str, float], model: str | None) -> JsonObject:
    part: JsonObject = {name: int(used[name]) for name in NAMES}
    part["totalTokens"] = sum(part.values())
    if COST in used:
        part["cost"] = {"amount": round(used[COST], 9), "currency": "USD"}
    return {**part, "model": model}


def _by_model(told: object) -> dict[str, dict[str, float]]:
    models = {model: as_object(usage) for model, usage in as_object(told).items()}
    return {model: _counts(usage) for model, usage in models.items() if "inputTokens" in usage}


def _counts(usage: JsonObject) -> dict[str, float]:
    counts: dict[str, float] = {ours: count(usage.get(theirs)) for ours, theirs in NAMES.items()}
    return {**counts, COST: _amount(usage.get("costUSD"))}


def _amount(told: object) -> float:
    usable = isinstance(told, int | float) and not isinstance(told, bool) and 0 < told < float("inf")
    return float(told) if usable and isinstance(told, int | float) else 0.0
