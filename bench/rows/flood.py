"""One session floods: messages per second, and whether every one arrived in its place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bench.contenders import CONTENDERS, DRAGOMAN, PLAIN, PYTHON_SDK, TYPESCRIPT_SDK, Arena
from bench.delivery import check_flood
from bench.peers.talk import Talk
from bench.row import Measure, Must, Probe, Row

WARM_UP = 2_000
SMALL, LARGE = 120, 4096
# The client keeps what it received until it has been checked, and the agent what it will send.
MAX_FLOOD_BYTES = 96_000_000
MESSAGE_OVERHEAD = 150


def timed_flood(arena: Arena, name: str, talk: Talk, sessions: list[str], count: int, size: int) -> float:
    """Flood once, tally the faults, and return updates per second over all sessions."""
    for session in sessions:
        talk.prepare(session, count, size)
    received = talk.flood(sessions, count, size)
    arena.faults[name] += check_flood(received.chunks, sessions, count)
    return count * len(sessions) / received.seconds


def calibrated_count(arena: Arena, name: str, talk: Talk, sessions: list[str], size: int) -> int:
    """Warm up, and choose how many updates each session gets, so that all flood about equally long."""
    largest = MAX_FLOOD_BYTES // (size + MESSAGE_OVERHEAD) // len(sessions)
    count = WARM_UP
    # In steps, because a flood of a few milliseconds says little about the rate of a long one.
    for share in (0.1, 0.3, 1.0):
        rate = timed_flood(arena, name, talk, sessions, count, size)
        count = int(min(max(rate * arena.seconds * share / len(sessions), WARM_UP), largest))
    return count


def flood_probe(name: str, size: int) -> Probe:
    @contextmanager
    def probe(arena: Arena) -> Iterator[Measure]:
        with arena.connect(name) as talk:
            sessions = [talk.new_session(arena.workspace)]
            count = calibrated_count(arena, name, talk, sessions, size)
            yield lambda: timed_flood(arena, name, talk, sessions, count, size)

    return probe


@contextmanager
def faults_probe(arena: Arena) -> Iterator[Measure]:
    with arena.connect(DRAGOMAN) as talk:
        sessions = [talk.new_session(arena.workspace) for _ in range(4)]

        def measure() -> float:
            timed_flood(arena, DRAGOMAN, talk, sessions, WARM_UP, SMALL)
            timed_flood(arena, DRAGOMAN, talk, sessions, WARM_UP, LARGE)
            return float(arena.faults[DRAGOMAN].total)

        yield measure


ROWS = (
    Row(
        "flood-small",
        "120-byte updates",
        "msg/s",
        {name: flood_probe(name, SMALL) for name in CONTENDERS},
        (
            Must(">=", 20, PYTHON_SDK, target=30),
            Must(">=", 8, TYPESCRIPT_SDK),
            Must(">=", 0.75, PLAIN, target=0.9),
            Must(">=", 15, PYTHON_SDK, PLAIN),
            Must(">=", 8, TYPESCRIPT_SDK, PLAIN),
        ),
    ),
    Row(
        "flood-large",
        "4 KiB updates",
        "msg/s",
        {name: flood_probe(name, LARGE) for name in CONTENDERS},
        (
            Must(">=", 4, PYTHON_SDK, target=5),
            Must(">=", 3, TYPESCRIPT_SDK),
            Must(">=", 0.65, PLAIN, target=0.8),
            Must(">=", 4, PYTHON_SDK, PLAIN),
            Must(">=", 3, TYPESCRIPT_SDK, PLAIN),
        ),
    ),
)

FAULT_ROWS = (
    Row(
        "faults",
        "lost or reordered, whole run",
        "updates",
        {DRAGOMAN: faults_probe},
        (Must("<=", 0),),
        rounds=1,
    ),
)
