"""Reads tokens and amounts that an agent tells. What cannot be true is ignored, as if it had not been told."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from dragoman.gateway.json_types import JsonObject, as_object, own_meta
from dragoman.gateway.ports.usage import UNIT, Money, Tokens

MOST_TOKENS = 10_000_000_000
"""Of one kind in one turn; more is nonsense."""
MOST_MONEY = 1_000_000
"""Of one session, in any currency."""
LONGEST_NAME = 200
NO_CURRENCY = "?"
_CURRENCY = re.compile(r"[A-Z][A-Z0-9._-]{0,15}")


@dataclass(frozen=True, slots=True)
class Used:
    """What an agent says of one turn and one model."""

    tokens: Tokens | None
    cost: Money | None = None
    model: str = ""
    agent: str = ""


def read_money(told: object) -> Money | None:
    """ACP's `cost`: an amount and its currency."""
    cost = as_object(told)
    amount, currency = cost.get("amount"), cost.get("currency")
    if not isinstance(amount, int | float) or isinstance(amount, bool) or not 0 <= amount <= MOST_MONEY:
        return None  # also not a number: it is not at least 0
    if currency is None:
        return Money(round(amount * UNIT), NO_CURRENCY)
    name = currency.upper() if isinstance(currency, str) else ""
    return Money(round(amount * UNIT), name) if _CURRENCY.fullmatch(name) else None


def read_tokens(told: object) -> Tokens | None:
    """ACP's `usage`, whichever way the agent counts; None if it has no input or output that can be true.

    Some count cached tokens as a part of `inputTokens`, and thoughts as a part of `outputTokens`, some beside them:
    `totalTokens` tells which.
    """
    usage = as_object(told)
    given, answered = _count(usage.get("inputTokens")), _count(usage.get("outputTokens"))
    if given is None or answered is None:
        return None
    read, written = _count(usage.get("cachedReadTokens")) or 0, _count(usage.get("cachedWriteTokens")) or 0
    thought, total = _count(usage.get("thoughtTokens")) or 0, _count(usage.get("totalTokens"))
    beside = total - given - answered if total is not None else read + written
    if beside < read + written <= given:
        given -= read + written
        beside += read + written
    if thought and beside == read + written + thought:
        answered += thought
    return Tokens(given, answered, read, written, min(thought, answered))


def read_turn(outcome: JsonObject, *, ours: bool) -> list[Used]:
    """What a prompt's result or error says of the turn.

    Agents that are part of Dragoman say it for each model, also with an error (`agents/native/usage.py`).
    """
    if ours:
        holder = outcome if "_meta" in outcome else as_object(outcome.get("data"))
        found = list(_parts(own_meta(holder).get("usage")))
        if found:
            return found
    tokens = read_tokens(outcome["usage"]) if "usage" in outcome else None
    return [Used(tokens)] if tokens is not None else []


def _parts(told: object) -> Iterator[Used]:
    for each in told if isinstance(told, list) else ():
        part = as_object(each)
        used = Used(
            read_tokens(part), read_money(part.get("cost")), name(part.get("model")), name(part.get("agent"))
        )
        if used.tokens is not None or used.cost is not None:
            yield used


def name(told: object) -> str:
    """The name of a model as text for a column; empty if it is none."""
    return told[:LONGEST_NAME].strip() if isinstance(told, str) and told.isprintable() else ""


def _count(number: object) -> int | None:
    if isinstance(number, float) and math.isfinite(number) and number.is_integer():
        number = int(number)
    if not isinstance(number, int) or isinstance(number, bool):
        return None
    return number if 0 <= number <= MOST_TOKENS else None
