"""Round trips: a lone echo, and another session's echo while one session floods; on pipes and over WebSockets."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from bench.contenders import CONTENDERS, DRAGOMAN, PLAIN, PYTHON_SDK, TYPESCRIPT_SDK, Arena
from bench.delivery import check_flood
from bench.peers.talk import FLOOD_TIMEOUT, Talk, prompt_params
from bench.peers.websocket import WebSocketTalk
from bench.row import Measure, Must, Probe, Row
from bench.rows.flood import SMALL, calibrated_count
from bench.servers import ACPREMOTE, serving

ECHOES, TAIL_ECHOES = 200, 1000
PAUSE_AFTER_ECHO = 0.002
NETWORKED = (DRAGOMAN, PLAIN, ACPREMOTE)

Reach = Callable[[Arena, str], AbstractContextManager[Talk]]
"""Connects to a contender and runs `initialize` with it."""


@contextmanager
def on_a_pipe(arena: Arena, name: str) -> Iterator[Talk]:
    with arena.connect(name) as talk:
        yield talk


@contextmanager
def over_websocket(arena: Arena, name: str) -> Iterator[Talk]:
    with serving(arena, name, "echo") as server, WebSocketTalk(server.url, server.token) as talk:
        talk.initialize()
        yield talk


def echo_probe(name: str, reach: Reach = on_a_pipe, count: int = ECHOES, rank: float = 0.5) -> Probe:
    """The round trip that a share of `rank` of all are not slower than."""

    @contextmanager
    def probe(arena: Arena) -> Iterator[Measure]:
        with reach(arena, name) as talk:
            session = talk.new_session(arena.workspace)
            for _ in range(ECHOES):
                talk.echo(session)

            def measure() -> float:
                return 1000 * sorted(talk.echo(session) for _ in range(count))[int(count * rank)]

            yield measure

    return probe


def busy_echo_probe(name: str, reach: Reach = on_a_pipe) -> Probe:
    @contextmanager
    def probe(arena: Arena) -> Iterator[Measure]:
        with reach(arena, name) as talk:
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
    while not talk.complete(chunks):
        chunks.append(talk.read(deadline - time.perf_counter()))
    arena.faults[name] += check_flood(echoes_removed(talk.lines(chunks), other), [flooding], count)
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
        (Must("<=", 0.6, PYTHON_SDK, target=0.4), Must("<=", 0.6, PYTHON_SDK, PLAIN)),
    ),
    Row(
        "echo-tail",
        "echo round trip p99",
        "ms",
        {name: echo_probe(name, count=TAIL_ECHOES, rank=0.99) for name in CONTENDERS},
        (Must("<=", 1, PYTHON_SDK, target=0.5),),
    ),
    Row(
        "echo-busy",
        "another session's echo in a flood",
        "ms",
        {name: busy_echo_probe(name) for name in CONTENDERS},
        (Must("<=", 0.1, TYPESCRIPT_SDK, target=0.05), Must("<=", 0.25, TYPESCRIPT_SDK, PLAIN)),
    ),
    Row(
        "websocket-echo",
        "echo round trip p50 over WebSocket",
        "ms",
        {name: echo_probe(name, over_websocket) for name in NETWORKED},
        (Must("<=", 1.2, ACPREMOTE, target=0.8),),
    ),
    Row(
        "websocket-echo-busy",
        "another session's echo in a flood over WebSocket",
        "ms",
        {name: busy_echo_probe(name, over_websocket) for name in NETWORKED},
        (Must("<=", 2, ACPREMOTE, target=0.5),),
    ),
)
