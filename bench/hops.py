"""Where the time of an echo goes, hop by hop: `python -m bench.hops [--write-docs]`.

An echo is a prompt that is answered with one update and the response. The gateway runs with a stopwatch
(`peers/timed_gateway.py`), which costs time itself: the first lines are measured without it.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.contenders import DIRECT, DRAGOMAN, PEERS, PLAIN, Arena, dragoman_command
from bench.documentation import machine, revision, write_section
from bench.peers.talk import Talk

ECHOES = 3_000
REPORT_TIMEOUT = 10.0
MEANINGS = {
    "read": "what a pipe brought, split into lines",
    "decode": "the envelope of the prompt and of the response, the head of the update",
    "correlate": "ids, interceptors, dispatch",
    "prompt": "`session/prompt`: checks, the turn, its prompt as an event",
    "update": "the agent's update: its session, its kind, where it is published",
    "end of turn": "stop reason, open tool calls, the record of the end",
    "collect": "what one turn of the loop published becomes a batch",
    "journal": "head line, checksum, `pwritev`",
    "directory": "state and time of the session, written at most once a second",
    "show": "the batch to each attachment",
    "encode": "request to the agent, session id in the update, response to the client",
    "log": "the log line of a turn, made later",
    "write": "what one turn of the loop sent: `write` on a pipe",
    "event loop": "epoll, callbacks, reading of pipes, what no hop above is",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.hops", description=__doc__)
    parser.add_argument("--write-docs", action="store_true", help="put the table on the page")
    options = parser.parse_args()
    with Arena(0.8, 1) as arena:
        text = "\n".join(table(arena))
    print(text)
    if options.write_docs:
        write_section("hops", f"{revision()}, {machine()}.\n\n{text}")
    return 0


def table(arena: Arena) -> list[str]:
    whole = {name: echo_microseconds(arena, name) for name in (DIRECT, PLAIN, DRAGOMAN)}
    timed, hops = timed_echo(arena)
    lines = ["| | µs of one echo | |", "|---|---:|---|"]
    lines.append(
        f"| client and agent alone | {whole[DIRECT]:.0f} | both processes and the pipes between them |"
    )
    lines.append(
        f"| through Dragoman, no journal | {whole[PLAIN]:.0f} | median of {ECHOES:,}, as all of these |"
    )
    lines.append(f"| **through Dragoman** | **{whole[DRAGOMAN]:.0f}** | as people run it |")
    lines.append(f"| with the stopwatch | {timed:.0f} | of which the gateway works: |")
    known = sum(microseconds for _, microseconds, _ in hops)
    for hop, microseconds, calls in hops:
        times = f" ({calls:g} ×)" if calls else ""
        lines.append(f"| {hop} | {microseconds:.1f} | {MEANINGS[hop]}{times} |")
    lines.append(
        f"| waiting | {timed - known:.0f} | agent and client work, and the kernel wakes who is next |"
    )
    return lines


def echo_microseconds(arena: Arena, name: str) -> float:
    with arena.connect(name) as talk:
        return _median(arena, talk)


def _median(arena: Arena, talk: Talk) -> float:
    session = talk.new_session(arena.workspace)
    for _ in range(ECHOES // 3):
        talk.echo(session)
    return 1e6 * statistics.median(talk.echo(session) for _ in range(ECHOES))


def timed_echo(arena: Arena) -> tuple[float, list[tuple[str, float, float]]]:
    """Microseconds of an echo with the stopwatch; and each hop with its microseconds and calls."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "hops.json"
        os.environ["BENCH_HOPS"] = str(file)
        command = [sys.executable, str(PEERS / "timed_gateway.py"), *dragoman_command("bench")[1:]]
        with arena.start(command) as talk:
            talk.initialize()
            session = talk.new_session(arena.workspace)
            for _ in range(ECHOES // 3):
                talk.echo(session)
            _report(talk.pid, file)
            median = 1e6 * statistics.median(talk.echo(session) for _ in range(ECHOES))
            found = _report(talk.pid, file)
    spent = {hop: nanoseconds / 1000 / ECHOES for hop, nanoseconds in found["spent"].items()}
    # The event loop also waits: what the processor did beyond the hops is its work.
    spent["event loop"] = found["processor"] / 1000 / ECHOES - sum(
        value for hop, value in spent.items() if hop != "event loop"
    )
    calls = found["calls"]
    return median, [
        (hop, spent.get(hop, 0.0), round(calls.get(hop, 0) / ECHOES, 1)) for hop in MEANINGS if hop in spent
    ]


def _report(pid: int, file: Path) -> Any:
    file.unlink(missing_ok=True)
    os.kill(pid, signal.SIGUSR1)
    deadline = time.monotonic() + REPORT_TIMEOUT
    while not file.exists():
        if time.monotonic() > deadline:
            raise TimeoutError("the gateway did not report")
        time.sleep(0.01)
    return json.loads(file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main())
