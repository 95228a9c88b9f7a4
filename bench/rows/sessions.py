"""What the journal is for: long sessions, many watchers, many sessions."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.contenders import DRAGOMAN, PEERS, Arena, dragoman_command
from bench.peers.client import Conversation
from bench.peers.talk import ConversationError
from bench.row import Measure, Must, Probe, Row
from bench.rows.flood import SMALL, timed_flood

LIVE, LOADED = "live", "loaded"
LONG, SHORT = "100,000 events", "100 events"
ONE, CROWD = "one client", "100 attachments"
FEW, MANY = "100 sessions", "10,000 sessions"
LONG_SESSION = 100_000
WATCHERS = 100
WATCHED_EVENTS = 20_000
REPLAY_TIMEOUT = 120.0


@contextmanager
def connected(arena: Arena, home: Path | None = None) -> Iterator[Conversation]:
    """`dragoman acp` with a journal, initialized."""
    with arena.start(dragoman_command("bench"), home=home) as talk:
        talk.initialize()
        yield talk


def stored_session(arena: Arena, count: int) -> str:
    """A session with `count` events, begun and closed by a process that is gone."""
    with connected(arena) as talk:
        session = talk.new_session(arena.workspace)
        talk.flood([session], count, SMALL)
        return session


def load_params(arena: Arena, session: str) -> dict[str, object]:
    return {"sessionId": session, "cwd": str(arena.workspace), "mcpServers": []}


@contextmanager
def live_probe(arena: Arena) -> Iterator[Measure]:
    with connected(arena) as talk:
        session = talk.new_session(arena.workspace)
        timed_flood(arena, DRAGOMAN, talk, [session], 2_000, SMALL)
        yield lambda: timed_flood(arena, DRAGOMAN, talk, [session], LONG_SESSION, SMALL)


@contextmanager
def loaded_probe(arena: Arena) -> Iterator[Measure]:
    session = stored_session(arena, LONG_SESSION)
    with connected(arena) as talk:
        talk.request("session/load", load_params(arena, session), REPLAY_TIMEOUT)

        def measure() -> float:
            token = talk.send("session/load", load_params(arena, session))
            received = talk.collect({token}, LONG_SESSION, REPLAY_TIMEOUT)
            return LONG_SESSION / received.seconds

        yield measure


def first_event_probe(count: int) -> Probe:
    @contextmanager
    def probe(arena: Arena) -> Iterator[Measure]:
        session = stored_session(arena, count)
        with connected(arena) as talk:
            talk.request("session/load", load_params(arena, session), REPLAY_TIMEOUT)

            def measure() -> float:
                started = time.perf_counter()
                token = talk.send("session/load", load_params(arena, session))
                first = talk.read(REPLAY_TIMEOUT)
                seconds = time.perf_counter() - started
                if token not in first:
                    talk.collect({token}, 1, REPLAY_TIMEOUT)
                return 1000 * seconds

            yield measure

    return probe


@contextmanager
def one_client_probe(arena: Arena) -> Iterator[Measure]:
    with connected(arena) as talk:
        session = talk.new_session(arena.workspace)
        yield lambda: timed_flood(arena, DRAGOMAN, talk, [session], WATCHED_EVENTS, SMALL)


@contextmanager
def crowd_probe(arena: Arena) -> Iterator[Measure]:
    """Deliveries per second while 100 sockets of another process watch one session."""
    home = arena.home()
    before = set((home / "run" / "owners").glob("*.sock"))
    with connected(arena) as talk:
        session = talk.new_session(arena.workspace)
        (owner,) = set((home / "run" / "owners").glob("*.sock")) - before
        params = json.dumps(load_params(arena, session))
        watchers = subprocess.Popen(
            [sys.executable, "-I", "-S", str(PEERS / "watchers.py"), str(owner), str(WATCHERS), params],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            _expect(watchers, b"attached")
            yield lambda: _watched_flood(talk, session, watchers)
        finally:
            watchers.kill()
            watchers.communicate()


def _watched_flood(talk: Conversation, session: str, watchers: subprocess.Popen[bytes]) -> float:
    talk.prepare(session, WATCHED_EVENTS, SMALL)
    assert watchers.stdin is not None
    watchers.stdin.write(b"%d\n" % WATCHED_EVENTS)
    watchers.stdin.flush()
    _expect(watchers, b"counting")
    started = time.perf_counter()
    talk.flood([session], WATCHED_EVENTS, SMALL)
    _expect(watchers, b"done")
    return WATCHED_EVENTS * (WATCHERS + 1) / (time.perf_counter() - started)


def _expect(watchers: subprocess.Popen[bytes], word: bytes) -> None:
    assert watchers.stdout is not None
    line = watchers.stdout.readline().strip()
    if line != word:
        raise ConversationError(f"the watchers said {line!r} instead of {word!r}")


def filled_home(arena: Arena, count: int) -> Path:
    """A home whose store has `count` sessions, made by the store itself."""
    home = arena.home(name=f"sessions-{count}")
    if not (home / "dragoman.db").exists():
        subprocess.run(
            [sys.executable, str(PEERS / "fill_store.py"), str(home), str(count)], check=True, timeout=120
        )
    return home


def list_probe(count: int) -> Probe:
    @contextmanager
    def probe(arena: Arena) -> Iterator[Measure]:
        with connected(arena, filled_home(arena, count)) as talk:
            talk.new_session(arena.workspace)

            def measure() -> float:
                started = time.perf_counter()
                for _ in range(20):
                    talk.request("session/list", {})
                return 1000 * (time.perf_counter() - started) / 20

            yield measure

    return probe


def start_probe(count: int) -> Probe:
    @contextmanager
    def probe(arena: Arena) -> Iterator[Measure]:
        home = filled_home(arena, count)
        with connected(arena, home):
            pass

        def measure() -> float:
            with arena.start(dragoman_command("bench"), home=home) as talk:
                talk.initialize()
                return 1000 * (time.perf_counter() - talk.started)

        yield measure

    return probe


@contextmanager
def stored_memory_probe(arena: Arena) -> Iterator[Measure]:
    """What 9,900 more unused sessions cost a process that lists them."""

    def measure() -> float:
        resident = []
        for count in (100, 10_000):
            with connected(arena, filled_home(arena, count)) as talk:
                talk.request("session/list", {})
                resident.append(_resident_kb(talk.pid))
        return max(0.0, resident[1] - resident[0]) / 9_900

    yield measure


def _resident_kb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return float(line.split()[1])
    raise ConversationError("the memory of the process cannot be read here")


ROWS = (
    Row(
        "load",
        "replay of 100,000 events against the live stream",
        "msg/s",
        {LIVE: live_probe, LOADED: loaded_probe},
        (Must(">=", 0.5, LIVE, LOADED),),
        rounds=3,
    ),
    Row(
        "first-event",
        "first event of a replay, long against short session",
        "ms",
        {SHORT: first_event_probe(100), LONG: first_event_probe(LONG_SESSION)},
        (Must("<=", 2, SHORT, LONG),),
    ),
    Row(
        "fan-out",
        "deliveries to 100 attachments against one client",
        "msg/s",
        {ONE: one_client_probe, CROWD: crowd_probe},
        (Must(">=", 5, ONE, CROWD),),
        rounds=3,
    ),
    Row(
        "list",
        "first page of the list",
        "ms",
        {FEW: list_probe(100), MANY: list_probe(10_000)},
        (Must("<=", 1.5, FEW, MANY),),
    ),
    Row(
        "start-stored",
        "start with sessions in the store",
        "ms",
        {FEW: start_probe(100), MANY: start_probe(10_000)},
        (Must("<=", 1.2, FEW, MANY),),
    ),
    Row(
        "stored-memory",
        "memory per stored session that nobody looks at",
        "KB",
        {DRAGOMAN: stored_memory_probe},
        (Must("<=", 2),),
        rounds=3,
    ),
)
