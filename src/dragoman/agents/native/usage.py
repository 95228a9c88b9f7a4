"""What a turn used, by model, for the gateway: in `_meta.dragoman.usage` of the answer, or of the error's data."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.wire.errors import RpcError
from dragoman.wire.json_types import JsonObject, as_object, own_meta

Counts = Mapping[str, float]


def difference(now: Counts, before: Counts) -> dict[str, float]:
    """Growth of each count; counts that shrank began again from zero."""
    again = any(now[name] < before.get(name, 0) for name in now)
    return {name: value if again else value - before.get(name, 0) for name, value in now.items()}


def count(told: object) -> int:
    """A number of tokens; 0 for everything else."""
    return told if isinstance(told, int) and not isinstance(told, bool) and told > 0 else 0


def with_usage(answer: JsonObject, parts: list[JsonObject]) -> JsonObject:
    if not parts:
        return answer
    meta = as_object(answer.get("_meta"))
    return {**answer, "_meta": {**meta, "dragoman": {**own_meta(answer), "usage": parts}}}


def tell_with(error: RpcError, parts: list[JsonObject]) -> RpcError:
    """The error, with what the failed turn used."""
    if parts and (error.data is None or isinstance(error.data, dict)):
        error.data = with_usage(error.data or {}, parts)
    return error


def of_agent(holder: JsonObject, name: str) -> JsonObject:
    """The answer or data of another agent than the session's own, marked as its."""
    parts = own_meta(holder).get("usage")
    if not isinstance(parts, list):
        return holder
    return with_usage(holder, [{**as_object(part), "agent": name} for part in parts])
