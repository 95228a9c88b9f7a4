"""Tables of names, written as text: hundreds of programs would not be readable one to a line."""

from __future__ import annotations


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())
