"""How long a decision takes: `python -m bench.policy`. 200 rules; shell lines with the parser loaded, and files."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path

from dragoman.config.model import PolicyRule
from dragoman.policy.decide import Policy, Verdict
from dragoman.policy.load import act_of_command
from dragoman.policy.requests.request import Surroundings
from dragoman.policy.requests.service import act_of_service
from dragoman.policy.rules import make_rules

LINES = (
    "git status",
    "git diff --stat HEAD~1 -- src",
    "pytest -q tests/policy",
    "grep -rn foo src | sort | uniq -c | head -20",
    "cd src && for f in a b c; do wc -l $f; done",
    "echo $(id)",
)
FILES = (
    ("fs/read_text_file", "src/dragoman/policy/decide.py"),
    ("fs/write_text_file", "docs/tutorial.md"),
    ("fs/read_text_file", "vault7/key.pem"),
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


def rules_on_paths() -> list[PolicyRule]:
    """200 rules on paths, each with a pattern or two."""
    made = [
        PolicyRule(decision="deny", name=f"vault {number}", paths=[f"{{workspace}}/**/vault{number}/**"])
        for number in range(60)
    ]
    made += [
        PolicyRule(
            decision="deny", name=f"away {number}", paths=[f"/srv/data{number}/**", f"~/.x{number}/**"]
        )
        for number in range(40)
    ]
    made += [
        PolicyRule(
            decision="deny", name=f"no {number}", access="write", paths=[f"{{workspace}}/**/*.x{number}"]
        )
        for number in range(18)
    ]
    made += [
        PolicyRule(decision="allow", name=f"area {number}", paths=[f"{{workspace}}/area{number}/**"])
        for number in range(80)
    ]
    made += [
        PolicyRule(decision="allow", name="sources", paths=["{workspace}/src/**"]),
        PolicyRule(decision="allow", name="pages", access="write", paths=["{workspace}/docs/**/*.md"]),
    ]
    return made


def measure(decide: Callable[[], Verdict]) -> tuple[float, float]:
    """Median and 99th percentile of a decision, from the text to the verdict, in microseconds of this thread.

    Time of the processor, not of the clock: on a busy machine the clock measures the others.
    """
    taken = []
    gc.collect()
    for _ in range(ROUNDS):
        start = time.thread_time_ns()
        decide()
        taken.append(time.thread_time_ns() - start)
    taken.sort()
    return taken[ROUNDS // 2] / 1000, taken[ROUNDS * 99 // 100] / 1000


def show(decide: Callable[[], Verdict], what: str) -> None:
    verdict = decide()
    median, high = measure(decide)
    print(f"{median:8.1f} {high:8.1f}  {verdict.decision:8}  {what}")


def main() -> None:
    workspace = str(Path(__file__).parent.parent.resolve())
    protected = ("/nowhere/dragoman",)
    on_commands = Policy(user=make_rules(rules(), "user", "bench"), protected=protected)
    on_paths = Policy(user=make_rules(rules_on_paths(), "user", "bench"), protected=protected)
    around = Surroundings(agent="bench", cwd=workspace, workspace=workspace)

    def line(text: str) -> Callable[[], Verdict]:
        return lambda: on_commands.decide(act_of_command(text, cwd=workspace, workspace=workspace))

    def file(method: str, path: str) -> Callable[[], Verdict]:
        params = {"sessionId": "bench", "path": f"{workspace}/{path}"}
        return lambda: on_paths.decide_unasked(act_of_service(method, params, around))

    print(f"{len(rules())} rules, {ROUNDS} decisions each, microseconds")
    print(f"{'p50':>8} {'p99':>8}  decision  what")
    for text in LINES:
        show(line(text), text)
    for method, path in FILES:
        show(file(method, path), f"{method} {path}")


if __name__ == "__main__":
    main()
