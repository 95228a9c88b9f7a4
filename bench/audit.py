"""What the audit costs: `python -m bench.audit [RECORDS] [--cpu] [--write-docs]`. Appending, checking, finding.

`--cpu` measures processor time, for a machine that other programs use too; what one record takes is always by the clock.
A folder with a million records is made by appending them, so that the rate of appending is that of a real folder.
"""

from __future__ import annotations

import argparse
import gc
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

from bench.contenders import Arena, dragoman_command
from bench.documentation import machine, revision, write_section
from bench.policy import LINES, rules
from bench.rows.flood import SMALL, calibrated_count, timed_flood
from dragoman.audit.log import AuditLog
from dragoman.audit.read import Query, query
from dragoman.audit.verify import verify
from dragoman.config.audit_model import AuditConfig
from dragoman.policy.decide import Policy
from dragoman.policy.load import act_of_command
from dragoman.policy.recorded import recorded
from dragoman.policy.replay import replay
from dragoman.policy.rules import make_rules

RECORDS = 1_000_000
SESSIONS = 2_000
ACTS = 100_000
ROUNDS = 9
"""Floods of each, alternately."""
HIDDEN = [f"secret-value-{number}" for number in range(20)]
"""Values that are searched for in every record."""


def decisions(workspace: str) -> list[dict[str, Any]]:
    """Records as rules make them, one for each line of `bench.policy`."""
    policy = Policy(user=make_rules(rules(), "user", "bench"), protected=("/nowhere/dragoman",))
    made = []
    for line in LINES:
        act = act_of_command(line, cwd=workspace, workspace=workspace, agent="claude")
        verdict = policy.decide(act)
        made.append(
            {
                "agent": "claude",
                "call": "toolu_01ABCDEF",
                "tool": "Bash",
                "decision": verdict.decision,
                "by": verdict.rule,
                "why": verdict.why,
                "policy": policy.digest,
                "act": recorded(act),
                "rule": policy.text_of(verdict.rule),
            }
        )
    return made


def append(log: AuditLog, count: int, workspace: str) -> list[int]:
    """Append so many records; the nanoseconds that each took."""
    made, taken = decisions(workspace), []
    gc.collect()
    for number in range(count):
        facts = {"session": f"dgm_{number % SESSIONS:024d}", **made[number % len(made)]}
        start = time.perf_counter_ns()
        log.record("decision", facts)
        taken.append(time.perf_counter_ns() - start)
    return taken


def by_processor() -> float:
    """Seconds of processor time that this process and the commands it ran have taken."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


CLOCKS: dict[bool, Callable[[], float]] = {False: time.perf_counter, True: by_processor}


def timed(work: Callable[[], object], *, cpu: bool = False) -> tuple[float, Any]:
    gc.collect()
    clock = CLOCKS[cpu]
    start = clock()
    found = work()
    return clock() - start, found


def command(folder: Path, *words: str, cpu: bool) -> float:
    """Seconds of a command, from its start to its end; the median of five."""
    env = {"DRAGOMAN_HOME": str(folder), "PATH": "/usr/bin:/bin"}
    line = [sys.executable, "-m", "dragoman", "audit", *words]

    def run() -> object:
        return subprocess.run(line, env=env, check=True, stdout=subprocess.DEVNULL)

    return statistics.median(timed(run, cpu=cpu)[0] for _ in range(5))


def path(arena: Arena) -> dict[str, float]:
    """Updates per second of 120 bytes with and without an audit, alternately, the median of each."""
    rates: dict[str, list[float]] = {"with": [], "without": []}
    with ExitStack() as stack:
        talks = {}
        for name in rates:
            home = arena.home(name=f"audit-{name}")
            if name == "without":
                with (home / "config.toml").open("a") as file:
                    file.write("[audit]\nenabled = false\n")
            talk = stack.enter_context(arena.start(dragoman_command("bench"), home=home))
            talk.initialize()
            talks[name] = (talk, [talk.new_session(arena.workspace)])
        count = calibrated_count(arena, "with", *talks["with"], SMALL)
        for _ in range(arena.rounds):
            for name, (talk, sessions) in talks.items():
                rates[name].append(timed_flood(arena, name, talk, sessions, count, SMALL))
    return {name: statistics.median(found) for name, found in rates.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.audit", description=__doc__)
    parser.add_argument("records", nargs="?", type=int, default=RECORDS)
    parser.add_argument("--cpu", action="store_true", help="processor time instead of the clock's")
    parser.add_argument("--write-docs", action="store_true", help="put the table on the page")
    options = parser.parse_args()
    lines = [
        "| | measured | at most, at least |",
        "|---|---:|---:|",
        *table(options.records, cpu=options.cpu),
    ]
    with Arena(0.8, ROUNDS) as arena:
        rates = path(arena)
    ratio = rates["with"] / rates["without"]
    lines.append(f"| 120-byte updates with an audit, against none, alternately | {ratio:.3f} × | 0.95 × |")
    text = "\n".join(lines)
    print(text)
    if options.write_docs:
        how = (
            " that other programs used too; in processor time, one record and updates by the clock"
            * options.cpu
        )
        write_section("audit", f"{revision()}, {machine()}{how}.\n\n{text}")


def table(count: int, *, cpu: bool) -> list[str]:
    workspace = str(Path(__file__).parent.parent.resolve())
    with tempfile.TemporaryDirectory(prefix="bench-audit-") as home:
        folder = Path(home, "audit")
        log = AuditLog(folder, AuditConfig(), HIDDEN)
        appending, taken = timed(lambda: append(log, count, workspace), cpu=cpu)
        log.close()
        taken.sort()
        size = sum(path.stat().st_size for path in folder.rglob("*.ndjson")) / count
        checking, report = timed(lambda: verify(folder), cpu=cpu)
        assert report.consistent
        one = Query(session=f"dgm_{7:024d}")
        finding, found = timed(lambda: list(query(folder, one)), cpu=cpu)
        shell = command(Path(home), "query", "--session", one.session or "", "--json", cpu=cpu)
        policy = Policy(user=make_rules(rules()[:50], "user", "bench"), protected=("/nowhere/dragoman",))
        acts = islice(query(folder, Query(kind="decision")), ACTS)
        replaying, replayed = timed(lambda: replay(policy, acts), cpu=cpu)
    p50, p99 = statistics.median(taken) / 1000, taken[count * 99 // 100] / 1000
    return [
        f"| one record of {size:.0f} bytes, {len(HIDDEN)} secrets looked for, p50 | {p50:.1f} µs | 60 µs |",
        f"| the same, p99 | {p99:.1f} µs | |",
        f"| records a second | {count / appending:,.0f} | 20,000 |",
        f"| `verify` of {count:,} records | {checking:.1f} s | 30 s |",
        f"| `query` of a session's {len(found)} records among {count:,} | {finding * 1000:.0f} ms | 200 ms |",
        f"| the same as a command, with its start | {shell * 1000:.0f} ms | |",
        f"| `policy replay` over {replayed.acts:,} acts | {replaying:.1f} s | 10 s |",
    ]


if __name__ == "__main__":
    main()
