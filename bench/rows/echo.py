"""Round trips: a lone echo, and another session's echo while one session floods."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.contenders import CONTENDERS, PYTHON_SDK, TYPESCRIPT_SDK, Arena
from bench.delivery import check_flood
from bench.peers.talk import FLOOD_TIMEOUT, Talk, prompt_params
from bench.row import Measure, Must, Probe, Row
from bench.rows.flood import SMALL, calibrated_count

ECHOES = 200
PAUSE_AFTER_ECHO = 0.002


def echo_probe(name: str) -> Probe:
    @contextmanager
    def probe(arena: Arena) -> Iterator[Measure]:
        with arena.connect(name) as talk:
            session = talk.new_session(arena.workspace)
            for _ in range(ECHOES):
                talk.echo(session)
            yield lambda: 1000 * statistics.median(talk.echo(session) for _ in range(ECHOES))

    return probe


def busy_echo_probe(name: str) -> Probe:
    @contextmanager
    def probe(arena: Arena) -> Iterator[Measure]:
        with arena.connect(name) as talk:
            flooding, other = talk.new_session(arena.workspace), talk.new_session(arena.workspace)
            count = calibrated_count(arena, name, talk, [flooding], SMALL)
            talk.echo(other)

            def measure() -> float:
                return 1000 * statistics.median(echoes_in_flood(arena, name, talk, flooding, other, count))

            yield measure

    return probe


def echoes_in_flood(
    arena: Arena, name: str, talk: Talk, flooding: str, other: str, count: int
) -> list[float]:
    """Echo in one session again and again while the other floods; return the seconds each echo took."""
    talk.prepare(flooding, count, SMALL)
    flood_token = talk.send("session/prompt", prompt_params(flooding, f"flood {count} {SMALL}"))
    chunks = [talk.read(FLOOD_TIMEOUT)]
    latencies: list[float] = []
    echo_token, sent, pause_until = b"", 0.0, 0.0
    deadline = time.perf_counter() + FLOOD_TIMEOUT
    while True:
        # Two chunks, because a response may be cut in half between them.
        recent = b"".join(chunks[-2:])
        now = time.perf_counter()
        if echo_token and echo_token in recent:
            latencies.append(now - sent)
            echo_token, pause_until = b"", now + PAUSE_AFTER_ECHO
        if flood_token in recent:
            break
        if not echo_token and now >= pause_until:
            echo_token, line = talk.encode("session/prompt", prompt_params(other, "echo"))
            sent = time.perf_counter()
            talk.write(line)
        chunks.append(talk.read(deadline - now))
    arena.faults[name] += check_flood(echoes_removed(chunks, other), [flooding], count)
    if echo_token:
        # The flood ended first: this echo waited for it and counts, with the wait it had.
        talk.collect({echo_token}, 1, FLOOD_TIMEOUT)
        latencies.append(time.perf_counter() - sent)
    return latencies


def echoes_removed(chunks: list[bytes], other: str) -> list[bytes]:
    """Keep the flood's own lines: the flooding session's updates and the last response."""
    lines = b"".join(chunks).splitlines()
    mine = b'"%b"' % other.encode()
    return [b"\n".join(line for line in lines if mine not in line)]


ROWS = (
    Row(
        "echo",
        "echo round trip p50",
        "ms",
        {name: echo_probe(name) for name in CONTENDERS},
        (Must("<=", 0.6, PYTHON_SDK),),
    ),
    Row(
        "echo-busy",
        "another session's echo in a flood",
        "ms",
        {name: busy_echo_probe(name) for name in CONTENDERS},
        (Must("<=", 0.25, TYPESCRIPT_SDK),),
    ),
)
