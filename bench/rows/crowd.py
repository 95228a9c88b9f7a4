"""Many sessions flood at once, each with an agent process of its own, against one that floods alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bench.contenders import DRAGOMAN, PLAIN, Arena
from bench.row import Measure, Must, Probe, Row
from bench.rows.flood import SMALL, calibrated_count, timed_flood

AGENTS = 32
ONE_AGENT = "1 agent"
ONE_PLAIN = "1 agent, no journal"


def crowd_probe(agents: int, name: str = DRAGOMAN) -> Probe:
    @contextmanager
    def probe(arena: Arena) -> Iterator[Measure]:
        with arena.connect(name) as talk:
            sessions = [talk.new_session(arena.workspace) for _ in range(agents)]
            count = calibrated_count(arena, name, talk, sessions, SMALL)
            yield lambda: timed_flood(arena, name, talk, sessions, count, SMALL)

    return probe


ROWS = (
    Row(
        "crowd",
        f"{AGENTS} agents at once, 120-byte updates",
        "msg/s",
        {
            DRAGOMAN: crowd_probe(AGENTS),
            ONE_AGENT: crowd_probe(1),
            PLAIN: crowd_probe(AGENTS, PLAIN),
            ONE_PLAIN: crowd_probe(1, PLAIN),
        },
        (Must(">=", 0.7, ONE_AGENT), Must(">=", 0.7, ONE_PLAIN, PLAIN)),
    ),
)
