"""Which checkpoints a session's or a turn's changes are between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.gateway.ports.checkpoints import Checkpoint, CheckpointError


@dataclass(frozen=True)
class Span:
    since: Checkpoint
    until: Checkpoint
    chain: Sequence[Checkpoint]
    """All checkpoints of the session from `since` to `until`."""
    running: bool = False
    """The turn that `until` began has no end yet."""


def span_of(chain: Sequence[Checkpoint], turn: int | None) -> Span:
    """From the first turn to the last checkpoint, or one turn from its beginning to its end."""
    begun = [number for number, point in enumerate(chain) if point.kind == "begin"]
    if turn is not None:
        begun = [number for number in begun if chain[number].turn == turn]
    if not begun:
        which = "a turn" if turn is None else f"turn {turn}"
        raise CheckpointError(f"There is no checkpoint of {which}.", "no_turn")
    first = begun[0]
    last = len(chain) - 1 if turn is None else min(first + 1, len(chain) - 1)
    running = last == len(chain) - 1 and chain[last].kind == "begin"
    return Span(chain[first], chain[last], chain[first : last + 1], running)


def present_span(span: Span, present: Checkpoint) -> Span:
    return Span(span.since, present, [*span.chain, present], running=True)
