"""`dragoman policy explain` and `policy edit`, as a person runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert

from dragoman.policy.memory.file import FILE, Remembered
from dragoman.policy.memory.memory import Memory
from dragoman.policy.memory.pattern import Pattern
from support.command_line import CommandLine

Run = Callable[..., subprocess.CompletedProcess[str]]

RULES = """
[[policy.rules]]
name = "making"
decision = "allow"
command = [["touch"]]

[[policy.rules]]
name = "nothing outside the project"
decision = "deny"
access = "write"
outside_workspace = true

[[policy.rules]]
name = "deploys are asked"
decision = "ask"
command = [["kubectl", "apply"]]
"""


def explained(shell: CommandLine, prompt: str, rules: str = RULES) -> dict[str, Any]:
    """What is told about the call that a prompt made, once the rules may be others."""
    (shell.home / "config.toml").write_text(RULES)
    session = shell.run("exec", "-a", "builtin", prompt).stderr.split()[-1]
    (shell.home / "config.toml").write_text(rules)
    done = shell.run("policy", "explain", session, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def test_a_decision_by_a_rule_is_explained(shell: CommandLine) -> None:
    found = explained(shell, "/run touch ../x", rules="")
    (decided,) = found["decisions"]
    assert (decided["result"], decided["rule"], decided["level"], decided["asked"]) == (
        "denied",
        "nothing outside the project",
        1,
        None,
    )
    assert decided["at"] and "denied by rule nothing outside the project" in decided["why"]
    act, today, order = found["act"], found["today"], found["order"]
    assert act["commands"][0]["words"] == ["touch", "../x"]
    assert (today["decision"], today["rule"]) == ("ask", "default")
    assert [step["says"] is None for step in order] == [False, True, True, True, True, True]


def test_a_question_is_explained_with_who_answered_and_when(shell: CommandLine) -> None:
    found = explained(shell, "/run kubectl apply -f x")
    (decided,) = found["decisions"]
    assert (decided["result"], decided["by"], decided["identity"], decided["rule"], decided["level"]) == (
        "rejected",
        "--approve none",
        "local",
        "deploys are asked",
        5,
    )
    assert decided["asked"]["at"] <= decided["at"]
    session, call = found["session"], str(found["call"])
    shown = shell.run("policy", "explain", f"{session}:{call[:9]}").stdout
    assert "asked" in shown and "rejected" in shown and "Order of authority" in shown
    assert "Today  ask: rule deploys are asked" in shown


def test_today_is_decided_with_what_is_remembered(shell: CommandLine) -> None:
    found = explained(shell, "/run make lint")
    session, act = found["session"], found["act"]
    assert found["today"]["decision"] == "ask"
    pattern = {"command": [["make", "lint"]], "exact": True}
    memory = Memory(
        id="m_1", pattern=[convert(pattern, Pattern)], scope="session", root=act["workspace"], session=session,
        call="c", who="ann", when="2026-01-01T00:00:00+00:00",
    )  # fmt: skip
    Remembered(shell.home / FILE).add(memory)
    today = json.loads(shell.run("policy", "explain", session, "--json").stdout)["today"]
    assert (today["decision"], today["rule"], today["remembered"]["id"]) == ("allow", "remembered m_1", "m_1")
    shown = shell.run("policy", "explain", session).stdout
    assert "Today  allow: remembered m_1: in this session, by ann on 2026-01-01" in shown
    assert "`dragoman policy forget m_1` takes it back" in shown
    shown = shell.run("policy", "explain", session, "--without-remembered").stdout
    assert "Today  ask: no rule is about" in shown


def test_a_call_that_does_not_exist_is_named_with_those_that_do(shell: CommandLine) -> None:
    found = explained(shell, "/run touch y")
    done = shell.run("policy", "explain", f"{found['session']}:nothing")
    assert done.returncode == 2
    assert '"nothing" is no call; decided ones are:' in done.stderr
    assert f"  {found['session']}:{found['call']}\n" in done.stderr


def test_a_markdown_export_tells_who_decided(shell: CommandLine) -> None:
    found = explained(shell, "/run touch y")
    shown = shell.run("sessions", "export", "--format", "markdown", str(found["session"])).stdout
    assert "- *`touch y`: allowed by the rule making*" in shown
    found = explained(shell, "/run kubectl apply -f x")
    shown = shell.run("sessions", "export", "--format", "markdown", str(found["session"])).stdout
    assert "`kubectl apply -f x`: rejected by --approve none" in shown


# -- edit


@pytest.fixture
def editor(tmp_path: Path) -> Callable[[str], dict[str, str]]:
    """The environment with an editor that writes a text."""

    def writing(text: str) -> dict[str, str]:
        (tmp_path / "new.toml").write_text(text)
        script = tmp_path / "editor.py"
        script.write_text(
            "import pathlib, sys\n"
            f"pathlib.Path(sys.argv[1]).write_text(pathlib.Path({str(tmp_path / 'new.toml')!r}).read_text())\n"
        )
        return {"VISUAL": f"{sys.executable} {script}"}

    return writing


def test_edited_rules_are_in_force(run: Run, home: Path, editor: Callable[[str], dict[str, str]]) -> None:
    done = run("policy", "edit", env=editor(RULES))
    assert (done.returncode, done.stdout) == (0, f"{home / 'config.toml'} is in force\n")
    assert (home / "config.toml").read_text() == RULES
    assert not (home / "config.draft.toml").exists()
    assert run("policy", "edit", env=editor(RULES)).stdout == "nothing changed\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[policy.rules]\n", "is not valid TOML"),
        ('[[policy.rules]]\ndecision = "maybe"\n', "policy.rules[0].decision"),
        (
            '[[policy.rules]]\nname = "x"\ndecision = "allow"\ncommand = [["git status"]]\n',
            'write ["git", "status"]',
        ),
    ],
)
def test_a_broken_file_is_not_put_in_force(
    run: Run, home: Path, editor: Callable[[str], dict[str, str]], text: str, problem: str
) -> None:
    (home / "config.toml").write_text(RULES)
    done = run("policy", "edit", env=editor(text))
    assert done.returncode == 1
    assert f"{home / 'config.toml'}:" in done.stderr and problem in done.stderr
    assert f"not put in force; what you wrote is in {home / 'config.draft.toml'}" in done.stderr
    assert (home / "config.toml").read_text() == RULES
    assert (home / "config.draft.toml").read_text() == text
    again = run("policy", "edit", env=editor(RULES))
    assert again.returncode == 2 and "from an earlier edit" in again.stderr


def test_a_wide_rule_is_warned_about_and_put_in_force(
    run: Run, home: Path, editor: Callable[[str], dict[str, str]]
) -> None:
    text = '[[policy.rules]]\nname = "wide"\ndecision = "allow"\nkind = ["execute"]\n'
    told = json.loads(run("policy", "edit", "--json", env=editor(text)).stdout)
    assert (told["changed"], told["problems"]) == (True, [])
    assert "wide: it allows every command" in told["warnings"][0]


def test_an_editor_that_fails_changes_nothing(run: Run, home: Path) -> None:
    (home / "config.toml").write_text(RULES)
    for named in (f"{sys.executable} -c exit(3)", "/nowhere/editor"):
        done = run("policy", "edit", env={"VISUAL": named})
        assert done.returncode == 2 and "the editor" in done.stderr
        assert (home / "config.toml").read_text() == RULES
        assert not (home / "config.draft.toml").exists()


# -- files that others may write


def test_rules_of_a_file_that_others_may_write_do_not_allow(run: Run, home: Path) -> None:
    file = home / "config.toml"
    file.write_text(RULES)
    file.chmod(0o666)
    done = run("policy", "test", "touch x")
    assert done.stdout.startswith("ask: ")
    assert f"{file}: its rules that allow are ignored" in done.stderr and f"chmod go-w {file}" in done.stderr
    assert run("policy", "test", "touch /etc/x").stdout.startswith("deny: ")
    file.chmod(0o600)
    assert run("policy", "test", "touch x").stdout.startswith("allow: ")
