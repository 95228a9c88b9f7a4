"""What agents, files and clocks do that they should not: the safe side, in bounded time."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dragoman.config.model import PolicyRule
from dragoman.policy.decide import Policy
from dragoman.policy.load import act_of_command
from dragoman.policy.requests.request import Surroundings, act_of_request
from dragoman.policy.rules import make_rules

ALLOWING = [PolicyRule(decision="allow", name="reading", command=[["cat"], ["echo"]])]


def policy(*rules: PolicyRule, now: datetime | None = None) -> Policy:
    made = Policy(user=make_rules(list(rules), "user", "config.toml"))
    if now is not None:
        made.now = lambda: now
    return made


@pytest.mark.parametrize(
    "line",
    ["echo " + "a" * 1_000_000, "echo a;" * 150_000, "$(" * 500_000, "\n" * 1_000_000, "'" * 1_000_001],
)
def test_a_command_of_a_megabyte_takes_little_time_and_is_not_allowed(line: str, tmp_path: Path) -> None:
    decide = policy(*ALLOWING).decide
    decide(act_of_command("echo a", cwd=str(tmp_path), workspace=str(tmp_path)))  # the parser is loaded
    best = 1.0
    for _ in range(3):
        start = time.thread_time()
        verdict = decide(act_of_command(line, cwd=str(tmp_path), workspace=str(tmp_path)))
        best = min(best, time.thread_time() - start)
        assert verdict.decision == "ask"
    assert best < 0.05


def test_a_large_request_takes_little_time(tmp_path: Path) -> None:
    around = Surroundings(agent="a", cwd=str(tmp_path), workspace=str(tmp_path))
    told: Any = {"edits": [{"file_path": f"f{number}"} for number in range(20_000)], "text": "x" * 1_000_000}
    start = time.thread_time()
    act = act_of_request({"kind": "read", "rawInput": told}, around)
    assert time.thread_time() - start < 0.5
    assert act.opaque is not None and any(path.outside for path in act.paths)


@pytest.mark.parametrize(
    ("tool", "kind"),
    [
        ({"kind": "read", "rawInput": {"command": "cat a; rm -rf b"}}, "execute"),
        ({"kind": "think", "title": "Thinking", "rawInput": {"cmd": ["rm", "b"]}}, "execute"),
        ({"kind": "search", "content": [{"type": "diff", "path": "a", "newText": "x"}]}, "edit"),
        ({"kind": "read", "rawInput": {"changes": [{"path": "a"}]}}, "edit"),
        ({"name": "write_file", "kind": "read", "rawInput": {"file_path": "a"}}, "edit"),
        ({"kind": ["read"], "rawInput": {"command": "rm b"}}, "execute"),
    ],
)
def test_a_kind_that_lies_is_not_believed(tool: dict[str, Any], kind: str, tmp_path: Path) -> None:
    around = Surroundings(agent="a", cwd=str(tmp_path), workspace=str(tmp_path))
    act = act_of_request(tool, around)
    assert act.kind == kind
    allowing = PolicyRule(decision="allow", name="mild", kind=["read", "search", "think"])
    assert policy(allowing).decide(act).decision == "ask"


def test_a_rule_that_ended_does_not_come_back_before_its_time(tmp_path: Path) -> None:
    """`expires` is a moment: a clock before it is before it, and text that is no moment has passed."""
    end = datetime(2027, 1, 31, 12, tzinfo=UTC)
    act = act_of_command("cat a", cwd=str(tmp_path), workspace=str(tmp_path))
    rule = PolicyRule(decision="allow", name="for now", command=[["cat"]], expires="2027-01-31T12:00+00:00")
    assert policy(rule, now=end - timedelta(seconds=1)).decide(act).decision == "allow"
    assert policy(rule, now=end).decide(act).decision == "ask"
    broken = PolicyRule(decision="allow", name="broken", command=[["cat"]], expires="soon")
    assert policy(broken, now=datetime.min.replace(tzinfo=UTC)).decide(act).decision == "ask"


def test_an_allow_that_ended_stays_ended_when_the_clock_goes_backwards(tmp_path: Path) -> None:
    end = datetime(2027, 1, 31, 12, tzinfo=UTC)
    act = act_of_command("cat a", cwd=str(tmp_path), workspace=str(tmp_path))
    allow = PolicyRule(decision="allow", name="for now", command=[["cat"]], expires="2027-01-31T12:00+00:00")
    deny = PolicyRule(decision="deny", name="freeze", command=[["rm"]], expires="2027-01-31T12:00+00:00")
    made = policy(allow, deny, now=end)
    assert made.decide(act).decision == "ask"
    made.now = lambda: end - timedelta(days=1)
    assert made.decide(act).decision == "ask"
    removing = act_of_command("rm a", cwd=str(tmp_path), workspace=str(tmp_path))
    assert made.decide(removing).decision == "deny"  # what restricts goes by the clock as it is


@pytest.mark.parametrize(
    "line",
    [
        "ls " + " ".join(f"/usr/*/*{number}" for number in range(500)),
        "cat " + " ".join(f"/usr/lib/**/*{number}" for number in range(200)),
        "find " + " ".join(["/usr", "/usr/lib", "/usr/share", "/var", "/etc"] * 50) + " -exec cat {} +",
    ],
    ids=["patterns", "deep patterns", "roots"],
)
def test_a_line_with_very_many_patterns_is_read_within_a_second(line: str, tmp_path: Path) -> None:
    started = time.thread_time()
    act = act_of_command(line, cwd=str(tmp_path), workspace=str(tmp_path))
    assert time.thread_time() - started < 1
    assert all(path.outside for path in act.all_paths)
