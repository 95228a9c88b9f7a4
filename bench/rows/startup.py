"""From the spawn of the contender to the answer to `initialize`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.contenders import CONTENDERS, PLAIN, PYTHON_SDK, Arena
from bench.row import Measure, Must, Probe, Row


def startup_probe(name: str) -> Probe:
    @contextmanager
    def probe(arena: Arena) -> Iterator[Measure]:
        def measure() -> float:
            with arena.connect(name) as talk:
                return 1000 * (time.perf_counter() - talk.started)

        # The first start fills the caches: byte code for all, the agent's capabilities for Dragoman.
        with arena.connect(name) as talk:
            talk.echo(talk.new_session(arena.workspace))
        yield measure

    return probe


ROWS = (
    Row(
        "startup",
        "spawn to initialize, known agent",
        "ms",
        {name: startup_probe(name) for name in CONTENDERS},
        (Must("<=", 0.4, PYTHON_SDK), Must("<=", 0.4, PYTHON_SDK, PLAIN)),
    ),
)
