"""Numbers of sessions, events and bytes, in words."""

from __future__ import annotations

from collections.abc import Sequence

SHOWN_SPANS = 5


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def are(spans: Sequence[tuple[int, int]]) -> str:
    """`is` for one event, else `are`."""
    return "is" if _is_one(spans) else "are"


def events(spans: Sequence[tuple[int, int]]) -> str:
    """`event 3`, or `events 3 to 5, 9`."""
    words = [f"{first} to {last}" if first != last else f"{first}" for first, last in spans[:SHOWN_SPANS]]
    more = f" and {counted(len(spans) - SHOWN_SPANS, 'more part')}" if len(spans) > SHOWN_SPANS else ""
    return f"{'event' if _is_one(spans) else 'events'} {', '.join(words)}{more}"


def size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 100_000 else f"{count / 1e3:,.1f} KB"


def _is_one(spans: Sequence[tuple[int, int]]) -> bool:
    return len(spans) == 1 and spans[0][0] == spans[0][1]
