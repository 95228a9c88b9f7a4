"""Many sessions flood at once, each with an agent process of its own, against one that floods alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bench.contenders import DRAGOMAN, Arena
from bench.row import Measure, Must, Probe, Row
from bench.rows.flood import SMALL, calibrated_count, timed_flood

AGENTS = 32
ONE_AGENT = "1 agent"


def crowd_probe(agents: int) -> Probe:
    @contextmanager
    def probe(arena: Arena) -> Iterator[Measure]:
        with arena.connect(DRAGOMAN) as talk:
            sessions = [talk.new_session(arena.workspace) for _ in range(agents)]
            count = calibrated_count(arena, DRAGOMAN, talk, sessions, SMALL)
            yield lambda: timed_flood(arena, DRAGOMAN, talk, sessions, count, SMALL)

    return probe


ROWS = (
    Row(
        "crowd",
        f"{AGENTS} agents at once, 120-byte updates",
        "msg/s",
        {DRAGOMAN: crowd_probe(AGENTS), ONE_AGENT: crowd_probe(1)},
        (Must(">=", 0.7, ONE_AGENT),),
    ),
)
