"""Where a write to a journal belongs, in the event loop or in a thread: `python -m bench.disk [--write-docs]`.

The first table is the time of one append by its size, and what it costs to hand it to a thread and to hear of it. The
second is a slow disk, made by a sleep before every write (`peers/slow_gateway.py`): how long requests wait that write
nothing (`session/cancel` of an unknown session) while eight sessions stream. The third is `sync = "full"`: events are
shown when the disk has them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.contenders import DRAGOMAN, PEERS, Arena, dragoman_command
from bench.documentation import machine, revision, write_section
from bench.peers.talk import Talk, prompt_params
from bench.rows.flood import SMALL, calibrated_count, timed_flood
from dragoman.store import limits, segments
from dragoman.store.writer import Writer

SIZES = (150, 4096, 65_536, 262_144, 1_048_576, 4_194_304)
EVENT = 4096
REPEATS = 40
DELAYS = (0.0, 0.005, 0.05)
STREAMING, RATE, SECONDS = 8, 20, 4


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.disk", description=__doc__)
    parser.add_argument("--write-docs", action="store_true", help="put the tables on the page")
    options = parser.parse_args()
    lines = [*sizes(), "", *slow_disk(), "", *safe_from_power_loss()]
    print("\n".join(lines))
    if options.write_docs:
        write_section("disk", f"{revision()}, {machine()}.\n\n" + "\n".join(lines))
    return 0


def sizes() -> list[str]:
    hop = asyncio.run(thread_hop())
    lines = ["| append of | in the event loop, µs | a thread and back adds, µs |", "|---|---:|---:|"]
    with tempfile.TemporaryDirectory(prefix="dragoman-bench-") as folder:
        writer = Writer(Path(folder), segments.End(), 1)
        for size in SIZES:
            events = [b"x" * min(size, EVENT)] * max(size // EVENT, 1)

            def append(events: list[bytes] = events) -> None:
                writer.write(writer.next_seq, events)

            lines.append(f"| {size:,} bytes | {microseconds(append):.0f} | {hop:.0f} |")
        writer.close()
    return lines


def microseconds(work: Callable[[], None]) -> float:
    taken = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        work()
        taken.append(1e6 * (time.perf_counter() - started))
    return statistics.median(taken)


async def thread_hop() -> float:
    """Microseconds until the event loop hears that a thread has done nothing."""
    loop = asyncio.get_running_loop()
    taken = []
    with ThreadPoolExecutor(1) as pool:
        for _ in range(REPEATS * 10):
            started = time.perf_counter()
            await loop.run_in_executor(pool, int)
            taken.append(1e6 * (time.perf_counter() - started))
    return statistics.median(taken)


def slow_disk() -> list[str]:
    limit = f"{limits.SLOW_SECONDS * 1000:g} ms"
    lines = [
        f"| each write takes | the loop always writes | a thread does after one above {limit} |",
        "|---|---:|---:|",
    ]
    with Arena(0.8, 1) as arena:
        for delay in DELAYS:
            always, threads = (others_wait(arena, delay, inline=inline) for inline in (True, False))
            lines.append(f"| {delay * 1000:g} ms longer | {always} | {threads} |")
    return lines


def others_wait(arena: Arena, delay: float, *, inline: bool) -> str:
    os.environ["BENCH_WRITE_SECONDS"] = str(delay)
    os.environ["BENCH_INLINE"] = "1" if inline else ""
    command = [sys.executable, str(PEERS / "slow_gateway.py"), *dragoman_command("shared")[1:]]
    with arena.start(command) as talk:
        talk.initialize()
        sessions = [talk.new_session(arena.workspace) for _ in range(STREAMING)]
        for session in sessions:
            talk.send("session/prompt", prompt_params(session, f"stream {RATE * SECONDS} {RATE}"))
        taken = []
        end = time.perf_counter() + SECONDS * 0.8
        while time.perf_counter() < end:
            started = time.perf_counter()
            talk.request("session/cancel", {"sessionId": "dgm_none"})
            taken.append(1000 * (time.perf_counter() - started))
            time.sleep(0.002)
    taken.sort()
    return f"p50 {taken[len(taken) // 2]:.1f} ms, p99 {taken[int(len(taken) * 0.99)]:.1f} ms"


def safe_from_power_loss() -> list[str]:
    lines = ["| | echo p50 | 120-byte updates | 32 sessions at once |", "|---|---:|---:|---:|"]
    with Arena(0.8, 1) as arena:
        for sync in ("normal", "full"):
            home = arena.home(name=sync)
            config = home / "config.toml"
            config.write_text(f'{config.read_text()}sync = "{sync}"\n')
            with arena.start(dragoman_command("shared"), home=home) as talk:
                talk.initialize()
                sessions = [talk.new_session(arena.workspace) for _ in range(32)]
                echo = statistics.median(talk.echo(sessions[0]) for _ in range(300))
                one = flood_rate(arena, talk, sessions[:1])
                many = flood_rate(arena, talk, sessions)
            lines.append(
                f'| `sync = "{sync}"` | {1000 * echo:.2f} ms | {one:,.0f} a second | {many:,.0f} a second |'
            )
    return lines


def flood_rate(arena: Arena, talk: Talk, sessions: list[str]) -> float:
    count = calibrated_count(arena, DRAGOMAN, talk, sessions, SMALL)
    return statistics.median(timed_flood(arena, DRAGOMAN, talk, sessions, count, SMALL) for _ in range(3))


if __name__ == "__main__":
    sys.exit(main())
