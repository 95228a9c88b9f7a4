"""Replaces secrets in records by `***`, wherever their values stand: as they are, in JSON text, in a URL.

Not found: a value in another coding (base64), split over several members, or shorter than `SHORTEST`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

import msgspec

from dragoman.audit.record import as_utf8

SHORTEST = 6
"""Characters of a secret; shorter values, such as `1` or `true`, would be found everywhere."""
SHORTEST_LINE = 16
"""Characters of a line of a secret of several lines, such as a private key, that is hidden by itself too."""
MOST = 10_000
"""Values that are hidden in all records; an agent that is restarted often may get new ones each time."""
LONGEST_TITLE = 200
"""Characters of a title; it is cut after secrets were replaced, so that no half of one is left."""
MOST_OWN = 200
"""Values of one record alone; to look for more in all of its words would hold up the event loop."""
NAMES = frozenset(
    {"session", "agent", "call", "tool", "toolKind", "decision", "by", "rule", "policy", "status"}
)
"""Members that are recorded all the same if there are too many values."""
MASK = "***"
TOKENS = r"\bdgt_[A-Za-z0-9_-]{43}"
"""Named tokens of gateways, whose values are not stored anywhere."""
TOKEN_PREFIX = b"dgt_"
_encode = msgspec.json.Encoder().encode


class Hiding:
    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: dict[str, None] = {}
        self._pattern = re.compile(TOKENS)
        self._encoded = [TOKEN_PREFIX]
        """As they would stand in the encoded record: looking for them there is much faster than the pattern."""
        self.add(values)

    def add(self, values: Iterable[str]) -> None:
        before = len(self._values)
        self._values.update(dict.fromkeys(form for value in values for form in forms(value)))
        for old in list(self._values)[: max(0, len(self._values) - MOST)]:
            del self._values[old]
        if len(self._values) != before or before == MOST:
            ordered = sorted(self._values, key=len, reverse=True)
            self._pattern = re.compile("|".join([*map(re.escape, ordered), TOKENS]))
            self._encoded = [TOKEN_PREFIX, *(_encode(form)[1:-1] for form in ordered)]

    def apply(self, facts: dict[str, Any], more: Iterable[str] = ()) -> dict[str, Any]:
        """The facts without these values and without `more`, which are those of this record alone."""
        try:
            encoded = _encode(facts)
        except UnicodeEncodeError:
            facts = as_utf8(facts)
            encoded = _encode(facts)
        title = facts.get("title")
        shown = not isinstance(title, str) or len(title) <= LONGEST_TITLE
        more = list(dict.fromkeys(value for value in more if len(value) >= SHORTEST))
        if shown and not more and not any(value in encoded for value in self._encoded):
            return facts
        if len(more) > MOST_OWN:
            return self._withhold(facts, more)
        return self._clean(facts, more)

    def _withhold(self, facts: dict[str, Any], more: list[str]) -> dict[str, Any]:
        """What happened without its words."""
        told = {name: value for name, value in facts.items() if name in NAMES and isinstance(value, str)}

        def clean(text: str) -> str:
            for value in more:
                text = text.replace(value, MASK)
            return self._pattern.sub(MASK, text)

        why = f"it has {len(more)} values of variables; with more than {MOST_OWN} no words are recorded"
        return {**{name: clean(value) for name, value in told.items()}, "withheld": why}

    def _clean(self, facts: dict[str, Any], more: Iterable[str]) -> dict[str, Any]:
        pattern = self._pattern
        own = sorted({form for value in more for form in forms(value)}, key=len, reverse=True)

        def clean(text: str) -> str:
            for value in own:
                text = text.replace(value, MASK)
            return pattern.sub(MASK, text)

        cleaned = {name: _clean(value, clean) for name, value in facts.items()}
        title = cleaned.get("title")
        if isinstance(title, str) and len(title) > LONGEST_TITLE:
            cleaned["title"] = title[: LONGEST_TITLE - 1] + "…"
        return cleaned


def forms(value: str) -> Iterator[str]:
    """The ways in which a value may stand in a text, as far as they are searched for."""
    if len(value) < SHORTEST:
        return
    value = as_utf8(value)
    yield value
    lines = value.splitlines()
    if len(lines) > 1:
        yield from (line for line in lines if len(line) >= SHORTEST_LINE)
    for ascii_only in (False, True):
        yield json.dumps(value, ensure_ascii=ascii_only)[1:-1]
    yield quote(value, safe="")
    yield quote_plus(value)


def _clean(value: Any, clean: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {_clean(name, clean): _clean(item, clean) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(item, clean) for item in value]
    return value
