"""Updates over the network: `dragoman serve` beside other ways to put an agent behind a port."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from bench.contenders import DRAGOMAN, PLAIN, Arena
from bench.peers.events import EventTalk
from bench.peers.talk import Talk
from bench.peers.websocket import WebSocketTalk
from bench.row import Measure, Must, Probe, Row
from bench.rows.flood import LARGE, SMALL, calibrated_count, timed_flood
from bench.servers import ACP_SERVER, ACPREMOTE, STDIO_TO_WS, serving

Dial = Callable[[str, str], AbstractContextManager[Any]]


def network_probe(row: str, contender: str, dial: Dial, size: int) -> Probe:
    @contextmanager
    def probe(arena: Arena) -> Iterator[Measure]:
        with serving(arena, contender, row) as server, dial(server.url, server.token) as connected:
            talk: Talk = connected
            talk.initialize()
            sessions = [talk.new_session(arena.workspace)]
            count = calibrated_count(arena, contender, talk, sessions, size)
            yield lambda: timed_flood(arena, contender, talk, sessions, count, size)

    return probe


def network_row(
    name: str, title: str, dial: Dial, size: int, contenders: tuple[str, ...], musts: tuple[Must, ...]
) -> Row:
    probes = {contender: network_probe(name, contender, dial, size) for contender in contenders}
    return Row(name, title, "msg/s", probes, musts)


ROWS = (
    network_row(
        "websocket-small",
        "120-byte updates over WebSocket",
        WebSocketTalk,
        SMALL,
        (DRAGOMAN, PLAIN, ACPREMOTE, STDIO_TO_WS),
        (
            Must(">=", 1.5, ACPREMOTE),
            Must(">=", 0.75, PLAIN, target=0.9),
            Must(">=", 4, ACPREMOTE, PLAIN),
            Must(">=", 8, STDIO_TO_WS, PLAIN),
        ),
    ),
    network_row(
        "websocket-large",
        "4 KiB updates over WebSocket",
        WebSocketTalk,
        LARGE,
        (DRAGOMAN, PLAIN, ACPREMOTE),
        (
            Must(">=", 1, ACPREMOTE, target=1.5),
            Must(">=", 0.65, PLAIN, target=0.8),
            Must(">=", 1.3, ACPREMOTE, PLAIN),
        ),
    ),
    network_row(
        "events-small",
        "120-byte updates as server-sent events",
        EventTalk,
        SMALL,
        (DRAGOMAN, PLAIN, ACP_SERVER),
        (Must(">=", 10, ACP_SERVER), Must(">=", 10, ACP_SERVER, PLAIN)),
    ),
)
