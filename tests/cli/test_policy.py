"""`dragoman policy`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dragoman.policy.load import act_of_command
from dragoman.policy.memory.file import FILE, Remembered
from dragoman.policy.memory.memory import Scope, memory_of
from dragoman.policy.memory.pattern import patterns_of

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


def remember(home: Path, project: Path, line: str, scope: Scope, session: str = "s1") -> str:
    """Remember a line as a person had it; returns the memory's id."""
    root = str(project.resolve())
    act = act_of_command(line, cwd=root, workspace=root, session=session)
    patterns = patterns_of(act)
    assert patterns is not None
    memory = memory_of(act, patterns, scope, None, call="c1", who="ann", now=datetime.now(UTC))
    Remembered(home / FILE).add(memory)
    return memory.id


def test_what_is_remembered_decides_as_it_would_for_an_agent(run: Run, project: Path, home: Path) -> None:
    id = remember(home, project, "make lint", "project")
    found = decide(run, project, "make lint")
    assert (found["decision"], found["rule"], found["level"]) == ("allow", f"remembered {id}", 4)
    assert isinstance(found["remembered"], dict) and found["remembered"]["who"] == "ann"
    told = ["policy", "test", "--cwd", str(project), "make lint"]
    first, memory, *_ = run(*told).stdout.splitlines()
    assert first.startswith(f"allow: remembered {id}: in this project, by ann on ")
    assert memory == f"  memory   `make lint`; `dragoman policy forget {id}` takes it back"
    assert run(*told, "--without-remembered").stdout.startswith("ask: no rule is about")
    other = project.parent / "other"
    (other / ".git").mkdir(parents=True)
    assert decide(run, other, "make lint")["decision"] == "ask"


def test_what_holds_in_one_session_decides_for_that_session(run: Run, project: Path, home: Path) -> None:
    remember(home, project, "make lint", "session", "s1")
    told = ["policy", "test", "--cwd", str(project), "make lint"]
    assert run(*told).stdout.startswith("ask:")
    assert run(*told, "--session", "s1").stdout.startswith("allow: remembered")


def test_what_is_remembered_decides_nothing_where_agents_remember(
    run: Run, project: Path, home: Path
) -> None:
    remember(home, project, "make lint", "project")
    (home / "config.toml").write_text('policy.remember = "agent"\n')
    assert decide(run, project, "make lint")["decision"] == "ask"


def test_a_broken_file_of_remembered_answers_is_told(run: Run, project: Path, home: Path) -> None:
    (home / FILE).write_text("{")
    done = run("policy", "test", "--cwd", str(project), "make lint")
    assert done.stdout.startswith("ask:") and FILE in done.stderr
