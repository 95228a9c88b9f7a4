"""A thousand clients at once, and one that does not read: what they cost the others and the memory."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.contenders import DRAGOMAN, Arena
from bench.peers.crowd import Crowd
from bench.peers.stalled import stalled_events
from bench.peers.talk import prompt_params
from bench.peers.websocket import WebSocketTalk, resident_kb
from bench.row import Measure, Must, Probe, Row
from bench.rows.memory import needs_proc
from bench.servers import Server, dragoman_serve

CLIENTS, STREAMING, RATE = 1_000, 100, 50
STREAM_SECONDS = 4
ONE = "one client"
WEBSOCKET, HTTP2 = "WebSocket", "HTTP/2"
STALLED_UPDATES, STALLED_SIZE = 40_000, 4096
STALL = 1.5
READING, NOT_READING = "a reader", "no reader"
TINY_BUFFER = 4096


def crowd_probe(clients: int, streaming: int) -> Probe:
    @contextmanager
    def probe(arena: Arena) -> Iterator[Measure]:
        name = f"crowd-{clients}"
        with (
            dragoman_serve(arena, journal=True, name=name, agent="shared") as server,
            Crowd(server.url, server.token, clients) as crowd,
        ):
            sessions = crowd.sessions(streaming, arena.workspace)
            crowd.stream(sessions, 2 * RATE, RATE)

            def measure() -> float:
                # As many measurements of a lone client as of one among many.
                p99, faults = crowd.stream(sessions, RATE * STREAM_SECONDS, RATE)
                arena.faults[DRAGOMAN] += faults
                return p99

            yield measure

    return probe


@contextmanager
def idle_probe(arena: Arena) -> Iterator[Measure]:
    """Resident memory that connections cost which only said `initialize`."""
    needs_proc()

    def measure() -> float:
        with (
            dragoman_serve(arena, journal=True, name="crowd-idle", agent="shared") as server,
            Crowd(server.url, server.token, CLIENTS // 10),
        ):
            before = resident_kb(server.pid)
            with Crowd(server.url, server.token, CLIENTS):
                return (resident_kb(server.pid) - before) / CLIENTS

    yield measure


@contextmanager
def stalled_websocket(server: Server, arena: Arena) -> Iterator[None]:
    with WebSocketTalk(server.url, server.token, receive_buffer=TINY_BUFFER) as talk:
        talk.initialize()
        session = talk.new_session(arena.workspace)
        talk.send("session/prompt", prompt_params(session, f"flood {STALLED_UPDATES} {STALLED_SIZE}"))
        yield


@contextmanager
def stalled_http2(server: Server, arena: Arena) -> Iterator[None]:
    prompt = f"flood {STALLED_UPDATES} {STALLED_SIZE}"
    with stalled_events(server.url, server.token, str(arena.workspace), prompt):
        yield


STALLS = {WEBSOCKET: stalled_websocket, HTTP2: stalled_http2}


def stalled_memory_probe(kind: str, journal: bool) -> Probe:
    """How much the gateway grows while 160 MB wait for a client that does not read."""

    @contextmanager
    def probe(arena: Arena) -> Iterator[Measure]:
        needs_proc()

        def measure() -> float:
            with dragoman_serve(arena, journal=journal, name=f"stalled-{kind[:2]}-{journal}") as server:
                with WebSocketTalk(server.url, server.token) as talk:
                    talk.initialize()
                    talk.flood([talk.new_session(arena.workspace)], 4000, STALLED_SIZE)
                before = resident_kb(server.pid)
                with STALLS[kind](server, arena):
                    until = time.monotonic() + STALL
                    peak = before
                    while time.monotonic() < until:
                        time.sleep(0.05)
                        peak = max(peak, resident_kb(server.pid))
                return (peak - before) / 1024

        yield measure

    return probe


def neighbour_probe(reading: bool) -> Probe:
    """Another client's echo while one session floods a client that reads, or does not."""

    @contextmanager
    def probe(arena: Arena) -> Iterator[Measure]:
        with (
            dragoman_serve(arena, journal=True, name=f"neighbour-{reading}") as server,
            WebSocketTalk(server.url, server.token) as other,
        ):
            other.initialize()
            session = other.new_session(arena.workspace)
            for _ in range(50):
                other.echo(session)

            def measure() -> float:
                with (read_flood if reading else stalled_websocket)(server, arena):
                    until = time.monotonic() + STALL
                    taken = []
                    while time.monotonic() < until:
                        taken.append(other.echo(session))
                    return 1000 * statistics.median(taken)

            yield measure

    return probe


@contextmanager
def read_flood(server: Server, arena: Arena) -> Iterator[None]:
    with WebSocketTalk(server.url, server.token) as talk:
        talk.initialize()
        session = talk.new_session(arena.workspace)
        reader = threading.Thread(target=talk.flood, args=([session], STALLED_UPDATES, STALLED_SIZE))
        reader.start()
        yield
        reader.join()


ROWS = (
    Row(
        "audience-delivery",
        f"p99 delivery, {CLIENTS:,} clients, {STREAMING} streaming",
        "ms",
        {DRAGOMAN: crowd_probe(CLIENTS, STREAMING), ONE: crowd_probe(1, 1)},
        (Must("<=", 3, ONE, target=1.5),),
    ),
    Row(
        "audience-memory",
        "memory per idle WebSocket client",
        "KB",
        {DRAGOMAN: idle_probe},
        (Must("<=", 100),),
        rounds=2,
    ),
    Row(
        "stalled-memory",
        "growth for a client that does not read",
        "MB",
        {
            DRAGOMAN: stalled_memory_probe(WEBSOCKET, journal=True),
            HTTP2: stalled_memory_probe(HTTP2, journal=True),
        },
        (Must("<=", 48), Must("<=", 48, None, HTTP2)),
        rounds=2,
    ),
    Row(
        "stalled-neighbour",
        "another's echo beside a client that does not read",
        "ms",
        {NOT_READING: neighbour_probe(False), READING: neighbour_probe(True)},
        (Must("<=", 1.5, READING, NOT_READING),),
    ),
)
