"""What a turn of `claude` cost, by model: its results have the sums since the process began, subagents included."""

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

    def read(self, result: JsonObject) -> list[JsonObject]:
        """What each model was used for since the last result; empty if the result does not say it by model."""
        models = {model: as_object(told) for model, told in as_object(result.get("modelUsage")).items()}
        told = {model: _counts(usage) for model, usage in models.items() if "inputTokens" in usage}
        whole, self._cost = self._cost, _amount(result.get("total_cost_usd"))
        if not told:
            return _turn_alone(result, difference({COST: self._cost}, {COST: whole})[COST])
        parts = []
        for model, counts in told.items():
            used = difference(counts, self._models.get(model, {}))
            if any(used.values()):
                parts.append(_part(used, model))
        self._models.update(told)
        return parts


def _turn_alone(result: JsonObject, cost: float) -> list[JsonObject]:
    """A version that tells no tokens by model: those of the turn, and its share of the whole cost."""
    usage = as_object(result.get("usage"))
    if not usage or "total_cost_usd" not in result:
        return []
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    used: dict[str, float] = {
        ours: count(usage.get(theirs)) for ours, theirs in zip(NAMES, names, strict=True)
    }
    models = list(as_object(result.get("modelUsage")))
    return [_part({**used, COST: cost}, models[0] if len(models) == 1 else None)]


def _part(used: dict[str, float], model: str | None) -> JsonObject:
    part: JsonObject = {name: int(used[name]) for name in NAMES}
    part["totalTokens"] = sum(part.values())
    return {**part, "model": model, "cost": {"amount": round(used[COST], 9), "currency": "USD"}}


def _counts(usage: JsonObject) -> dict[str, float]:
    counts: dict[str, float] = {ours: count(usage.get(theirs)) for ours, theirs in NAMES.items()}
    return {**counts, COST: _amount(usage.get("costUSD"))}


def _amount(told: object) -> float:
    usable = isinstance(told, int | float) and not isinstance(told, bool) and 0 < told < float("inf")
    return float(told) if usable and isinstance(told, int | float) else 0.0
