"""What the audit costs: `python -m bench.audit [RECORDS]`. Appending, checking, finding a session, replaying rules.

A folder with a million records is made by appending them, so that the rate of appending is that of a real folder.
"""

from __future__ import annotations

import gc
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from bench.policy import LINES, rules
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


def timed(work: Callable[[], object]) -> tuple[float, Any]:
    gc.collect()
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


def command(folder: Path, *words: str) -> float:
    """Seconds of a command, from its start to its end."""
    env = {"DRAGOMAN_HOME": str(folder), "PATH": "/usr/bin:/bin"}
    line = [sys.executable, "-m", "dragoman", "audit", *words]
    return timed(lambda: subprocess.run(line, env=env, check=True, stdout=subprocess.DEVNULL))[0]


def main(count: int) -> None:
    workspace = str(Path(__file__).parent.parent.resolve())
    with tempfile.TemporaryDirectory(prefix="bench-audit-") as home:
        folder = Path(home, "audit")
        log = AuditLog(folder, AuditConfig(), HIDDEN)
        seconds, taken = timed(lambda: append(log, count, workspace))
        taken.sort()
        log.close()
        size = sum(path.stat().st_size for path in folder.rglob("*.ndjson")) / count
        print(f"{count:,} records of {size:.0f} bytes, {SESSIONS:,} sessions")
        print(
            f"append     p50 {statistics.median(taken) / 1000:.1f} µs, p99 {taken[count * 99 // 100] / 1000:.1f} µs"
        )
        print(f"           {count / seconds:,.0f} records/s")
        seconds, report = timed(lambda: verify(folder))
        print(f"verify     {seconds:.1f} s, consistent: {report.consistent}")
        one = Query(session=f"dgm_{7:024d}")
        seconds, found = timed(lambda: list(query(folder, one)))
        print(f"query      {seconds * 1000:.0f} ms for the {len(found)} records of one session")
        shell = command(Path(home), "query", "--session", one.session or "", "--json")
        print(f"           {shell * 1000:.0f} ms as a command")
        policy = Policy(user=make_rules(rules()[:50], "user", "bench"), protected=("/nowhere/dragoman",))
        acts = islice(query(folder, Query(kind="decision")), ACTS)
        seconds, replayed = timed(lambda: replay(policy, acts))
        print(f"replay     {seconds:.1f} s for {replayed.acts:,} acts")


if __name__ == "__main__":
    main(int(sys.argv[1].replace(",", "")) if len(sys.argv) > 1 else RECORDS)
