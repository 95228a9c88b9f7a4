"""How long a decision takes: `python -m bench.policy`. 200 rules, simple and longer lines, with the parser loaded."""

from __future__ import annotations

import gc
import time
from pathlib import Path

from dragoman.config.model import PolicyRule
from dragoman.policy.decide import Policy
from dragoman.policy.load import act_of_command
from dragoman.policy.rules import make_rules

LINES = (
    "git status",
    "git diff --stat HEAD~1 -- src",
    "pytest -q tests/policy",
    "grep -rn foo src | sort | uniq -c | head -20",
    "cd src && for f in a b c; do wc -l $f; done",
    "echo $(id)",
)
ROUNDS = 5000


def rules() -> list[PolicyRule]:
    """200 rules: most for commands that are not asked for, as in a long file of a team."""
    made = [
        PolicyRule(decision="allow", name=f"tool {number}", command=[[f"tool{number}", "run"]])
        for number in range(180)
    ]
    made += [
        PolicyRule(decision="deny", name=f"no {number}", command=[[f"bad{number}"]]) for number in range(14)
    ]
    made += [
        PolicyRule(decision="deny", name="inside", access="write", outside_workspace=True),
        PolicyRule(decision="deny", name="secrets", paths=["{workspace}/**/.env", "~/.ssh/**"]),
        PolicyRule(decision="ask", name="network", hosts=["*.internal.example"]),
        PolicyRule(
            decision="allow", name="reading", command=[["git", ["status", "diff", "log"]], ["pytest"], ["wc"]]
        ),
        PolicyRule(decision="allow", name="searching", command=[["grep"], ["sort"], ["uniq"], ["head"]]),
        PolicyRule(decision="allow", name="kinds", kind=["read", "search"]),
    ]
    return made


def measure(policy: Policy, line: str, workspace: str) -> tuple[float, float]:
    """Median and 99th percentile of a decision, from the text to the verdict, in microseconds of this thread.

    Time of the processor, not of the clock: on a busy machine the clock measures the others.
    """
    taken = []
    gc.collect()
    for _ in range(ROUNDS):
        start = time.thread_time_ns()
        policy.decide(act_of_command(line, cwd=workspace, workspace=workspace))
        taken.append(time.thread_time_ns() - start)
    taken.sort()
    return taken[ROUNDS // 2] / 1000, taken[ROUNDS * 99 // 100] / 1000


def main() -> None:
    workspace = str(Path(__file__).parent.parent.resolve())
    configured = rules()
    policy = Policy(user=make_rules(configured, "user", "bench"), protected=("/nowhere/dragoman",))
    print(f"{len(configured)} rules, {ROUNDS} decisions a line, microseconds")
    print(f"{'p50':>8} {'p99':>8}  decision  line")
    for line in LINES:
        verdict = policy.decide(act_of_command(line, cwd=workspace, workspace=workspace))
        median, high = measure(policy, line, workspace)
        print(f"{median:8.1f} {high:8.1f}  {verdict.decision:8}  {line}")


if __name__ == "__main__":
    main()
