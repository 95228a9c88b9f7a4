"""`dragoman policy`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

RULES = """
[[policy.rules]]
name = "tests and git reading"
decision = "allow"
command = [["git", ["status", "diff", "log"]], ["pytest"]]
match = ["git diff --stat"]
not_match = ["git push"]

[[policy.rules]]
name = "nothing outside the project"
decision = "deny"
access = "write"
outside_workspace = true
reason = "Ask the owner of that folder."
"""


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Path:
    (home / "config.toml").write_text(RULES)
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


def decide(run: Run, project: Path, line: str, kind: str = "execute") -> dict[str, object]:
    done = run("policy", "test", "--json", "--kind", kind, "--cwd", str(project), "--", line)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def test_a_line_is_decided_with_its_rule_its_reason_and_its_facts(run: Run, project: Path) -> None:
    allowed = decide(run, project, "git status && pytest -q src")
    assert (allowed["decision"], allowed["rule"]) == ("allow", "tests and git reading")
    act = allowed["act"]
    assert isinstance(act, dict)
    assert [command["words"] for command in act["commands"]] == [["git", "status"], ["pytest", "-q", "src"]]
    assert act["paths"] == [{"path": str(project.resolve() / "src"), "access": "read", "outside": False}]
    assert (act["opaque"], act["kind"], act["workspace"]) == (None, "execute", str(project.resolve()))
    denied = decide(run, project, "touch /etc/x", kind="read")
    assert (denied["decision"], denied["reason"]) == ("deny", "Ask the owner of that folder.")
    asked = decide(run, project, "git status $(id)")
    assert (asked["decision"], asked["rule"]) == ("ask", "default")
    assert "not understood" in str(asked["why"])


def test_the_words_for_people_name_each_command_and_path(run: Run, project: Path) -> None:
    shown = run("policy", "test", "--cwd", str(project), "cat /etc/hosts | head").stdout
    assert shown.splitlines() == [
        "ask: no rule is about `cat /etc/hosts`",
        "  runs     cat /etc/hosts",
        "  runs     head",
        "  reads    /etc/hosts  (outside the workspace)",
    ]


def test_the_rules_in_force_are_shown(run: Run, project: Path) -> None:
    assert "tests and git reading" in run("policy", "show").stdout
    shown = json.loads(run("policy", "show", "--json").stdout)
    assert [rule["name"] for rule in shown["rules"]] == [
        "tests and git reading",
        "nothing outside the project",
    ]
    assert shown["rules"][0]["command"] == [["git", ["status", "diff", "log"]], ["pytest"]]


def test_a_mistake_is_named_and_the_exit_code_tells(run: Run, project: Path, home: Path) -> None:
    assert run("policy", "check").stdout == "2 rules, no problem found\n"
    (home / "config.toml").write_text(RULES.replace('"git push"', '"git log"'))
    done = run("policy", "check", "--json")
    assert done.returncode == 1
    (problem,) = json.loads(done.stdout)["problems"]
    assert problem["file"] == str(home / "config.toml")
    assert problem["rule"] == "tests and git reading"
    assert "git log" in problem["problem"]


def test_a_workspace_narrows_and_never_allows(run: Run, project: Path) -> None:
    file = project / ".dragoman" / "config.toml"
    file.parent.mkdir()
    file.write_text('[[policy.rules]]\nname = "careful"\ndecision = "ask"\ncommand = [["git"]]\n')
    assert decide(run, project, "git status")["rule"] == "careful"
    file.write_text('[[policy.rules]]\ndecision = "allow"\ncommand = [["rm"]]\n')
    done = run("policy", "test", "--cwd", str(project), "rm x")
    assert done.returncode == 2
    assert "never widen" in done.stderr


def test_nothing_to_decide_is_bad_usage(run: Run, project: Path) -> None:
    done = run("policy", "test", "--cwd", str(project))
    assert (done.returncode, done.stdout) == (2, "")
    assert "give a shell line" in done.stderr
    assert run("policy", "test", "--cwd", str(project), "--kind", "read").returncode == 0


def test_without_rules_it_says_who_is_asked(run: Run) -> None:
    assert (
        run("policy", "show").stdout
        == "There are no rules: permission requests go to a person, writes to protected places are denied.\n"
    )


def test_a_command_that_is_not_a_list_of_lists_is_explained(run: Run, home: Path) -> None:
    (home / "config.toml").write_text('[[policy.rules]]\ndecision = "allow"\ncommand = ["git", "status"]\n')
    assert (
        'expected a list of words, such as ["git", "status"], got the string "git"'
        in run("policy", "check").stderr
    )


def test_a_word_of_the_wrong_type_is_named(run: Run, home: Path) -> None:
    (home / "config.toml").write_text('[[policy.rules]]\ndecision = "allow"\ncommand = [["git", 5]]\n')
    done = run("policy", "check")
    assert done.returncode == 2
    assert "policy.rules[0].command[0][1]" in done.stderr
