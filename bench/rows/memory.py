"""Memory of the gateway process alone: its peak in floods, and what an added session costs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.contenders import DRAGOMAN, PLAIN, Arena, dragoman_command
from bench.delivery import check_flood
from bench.installs import NotAvailable
from bench.row import Measure, Must, Probe, Row
from bench.rows.flood import LARGE, SMALL

# More than the peak may be: a gateway that buffers instead of pushing back cannot pass.
FLOODS = ((SMALL, 200_000), (LARGE, 40_000))
STALL_SECONDS = 1.0
WARM_SESSIONS, ADDED_SESSIONS = 32, 128


def peak_probe(name: str) -> Probe:
    """Flood a client that at first does not read, and read the kernel's high-water mark."""

    @contextmanager
    def probe(arena: Arena) -> Iterator[Measure]:
        needs_proc()
        with arena.connect(name) as talk:
            sessions = [talk.new_session(arena.workspace)]

            def measure() -> float:
                for size, count in FLOODS:
                    talk.prepare(sessions[0], count, size)
                    received = talk.flood(sessions, count, size, stall=STALL_SECONDS)
                    arena.faults[name] += check_flood(received.chunks, sessions, count)
                return megabytes(talk.pid, "status", "VmHWM")

            yield measure

    return probe


def per_session_probe(name: str) -> Probe:
    """Open sessions with a shared agent, so that only the gateway's own cost shows."""

    @contextmanager
    def probe(arena: Arena) -> Iterator[Measure]:
        needs_proc()
        with arena.start(dragoman_command("shared"), journal=name != PLAIN) as talk:
            talk.initialize()

            def measure() -> float:
                for _ in range(WARM_SESSIONS):
                    talk.echo(talk.new_session(arena.workspace))
                before = megabytes(talk.pid, "smaps_rollup", "Rss")
                for _ in range(ADDED_SESSIONS):
                    talk.echo(talk.new_session(arena.workspace))
                return (megabytes(talk.pid, "smaps_rollup", "Rss") - before) / ADDED_SESSIONS

            yield measure

    return probe


def needs_proc() -> None:
    if not Path("/proc/self/smaps_rollup").exists():
        raise NotAvailable("memory is read from /proc, which only Linux has")


def megabytes(pid: int, file: str, field: str) -> float:
    """Read one field of `/proc/PID/FILE`, which the kernel gives in kB."""
    for line in Path(f"/proc/{pid}/{file}").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise OSError(f"/proc/{pid}/{file} has no {field}")


ROWS = (
    Row(
        "memory-peak",
        "peak memory in a flood",
        "MB",
        {name: peak_probe(name) for name in (DRAGOMAN, PLAIN)},
        (Must("<=", 80), Must("<=", 80, None, PLAIN)),
        rounds=1,
    ),
    Row(
        "memory-session",
        "memory per added session",
        "MB",
        {name: per_session_probe(name) for name in (DRAGOMAN, PLAIN)},
        (Must("<=", 0.1), Must("<=", 0.1, None, PLAIN)),
        rounds=3,
    ),
)
