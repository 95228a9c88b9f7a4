"""Changed policy files: in force for the next act, broken ones told, wider ones announced."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from dragoman.config.load import Loaded, load
from dragoman.config.model import PolicyConfig
from dragoman.config.paths import find_paths
from dragoman.policy.examples import FILE
from dragoman.policy.load import act_of_command
from dragoman.policy.requests.request import Surroundings
from dragoman.policy.requests.service import act_of_switch
from dragoman.policy.rulebook import LOOK_SECONDS, Change, Rulebook

ALLOW = '[[policy.rules]]\nname = "{name}"\ndecision = "allow"\ncommand = [["{program}"]]\n'
DENY = '[[policy.rules]]\nname = "no {program}"\ndecision = "deny"\ncommand = [["{program}"]]\n'
ASK = '[[policy.rules]]\nname = "ask {program}"\ndecision = "ask"\ncommand = [["{program}"]]\n'


class Book:
    """A rulebook over files, whose clock the test moves."""

    def __init__(self, home: Path) -> None:
        self.time = 0.0
        self.changes: list[Change] = []
        self.workspace = home / "project"
        self.workspace.mkdir()
        self.paths = find_paths({"DRAGOMAN_HOME": str(home)})
        self.paths.state_dir.mkdir(parents=True, exist_ok=True)
        self.book = Rulebook(
            self._load, PolicyConfig(), self.paths, home / "etc" / "policy.toml", lambda: self.time
        )
        self.book.on_change = self.changes.append

    def _load(self, workspace: Path | None) -> Loaded:
        return load(self.paths, workspace=workspace, environ={})

    def write(self, text: str, file: Path | None = None) -> None:
        """Replace a file, as editors do: the new one has another inode."""
        file = file or self.paths.config_file
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_suffix(".new")
        draft.write_text(text)
        os.replace(draft, file)
        self.time += LOOK_SECONDS

    def decision(self, line: str) -> str:
        place = str(self.workspace)
        return self.book.policy_for(place).decide(act_of_command(line, cwd=place, workspace=place)).decision

    def switch(self, mode: str) -> str:
        around = Surroundings(workspace=str(self.workspace))
        return self.book.policy_for(str(self.workspace)).decide_unasked(act_of_switch(mode, around)).decision


@pytest.fixture
def book(tmp_path: Path) -> Book:
    return Book(tmp_path)


def allow(program: str, name: str | None = None) -> str:
    return ALLOW.format(name=name or program, program=program)


def deny(program: str) -> str:
    return DENY.format(program=program)


def ask(program: str) -> str:
    return ASK.format(program=program)


def test_a_changed_file_is_in_force_for_the_next_act(book: Book) -> None:
    book.write(allow("ls"))
    assert (book.decision("ls"), book.decision("date")) == ("allow", "ask")
    book.write(deny("ls"))
    assert (book.decision("ls"), book.changes) == ("deny", [])
    (book.workspace / ".git").mkdir()
    book.write(deny("date"), book.workspace / ".dragoman" / "config.toml")
    assert book.decision("date") == "deny"


def test_files_are_looked_at_once_a_second_at_most(book: Book) -> None:
    book.write(allow("ls"))
    assert book.decision("ls") == "allow"
    book.write(deny("ls"))
    book.time -= LOOK_SECONDS / 2
    assert book.decision("ls") == "allow"
    book.time += LOOK_SECONDS / 2
    assert book.decision("ls") == "deny"


def test_a_broken_file_leaves_the_rules_in_force_and_is_told_once(book: Book) -> None:
    book.write(allow("ls"))
    assert book.decision("ls") == "allow"
    book.write("[[policy.rules]\n")
    assert book.decision("ls") == "allow"
    (change,) = book.changes
    assert change.severity == "error" and str(book.paths.config_file) in change.text
    assert "stay in force" in change.text
    book.time += 5
    assert book.decision("ls") == "allow" and len(book.changes) == 1
    assert book.book.trouble(str(book.workspace)) is not None
    book.write(allow("ls"))
    assert book.decision("ls") == "allow"
    assert book.book.trouble(str(book.workspace)) is None
    assert [one.severity for one in book.changes] == ["error", "info"]


def test_a_file_that_is_broken_at_first_asks_and_says_so(book: Book) -> None:
    book.write("nonsense = [")
    assert book.decision("ls") == "ask"
    assert "everything is asked" in book.changes[0].text
    book.write(allow("ls"))
    assert book.decision("ls") == "allow"


OWN = """
[[policy.narrow]]
name = "no rm"
decision = "deny"
command = [["rm"]]

[[policy.narrow]]
name = "two for curl"
decision = "ask"
command = [["curl"]]
approvals = 2

[[policy.narrow]]
name = "no yolo"
decision = "deny"
kind = ["switch_mode"]
mode = ["yolo"]
"""


@pytest.mark.parametrize(
    "workspace",
    [
        deny("git") + 'not_match = ["git push"]\n' + deny("date"),
        "[[policy.rules]\n",
    ],
)
def test_a_workspace_whose_rules_cannot_be_used_lifts_nothing_of_the_user(book: Book, workspace: str) -> None:
    book.write(OWN)
    book.write(workspace, book.workspace / ".dragoman" / "config.toml")
    assert (book.decision("rm x"), book.decision("ls"), book.decision("git status")) == ("deny", "ask", "ask")
    place = str(book.workspace)
    act = act_of_command("curl example.org", cwd=place, workspace=place)
    assert book.book.policy_for(place).decide(act).approvals == 2
    assert (book.switch("yolo"), book.switch("plan")) == ("deny", "ask")
    assert book.decision("date") == ("deny" if workspace.startswith("[[policy.rules]]") else "ask")


def test_a_broken_administrator_file_at_first_lifts_nothing_of_the_others(book: Book) -> None:
    book.write(OWN)
    book.write(deny("date"), book.workspace / ".dragoman" / "config.toml")
    book.write("[[policy.rules]\n", book.paths.config_file.parent / "etc" / "policy.toml")
    assert (book.decision("rm x"), book.decision("date"), book.decision("ls")) == ("deny", "deny", "ask")
    assert (book.switch("yolo"), book.switch("plan")) == ("deny", "ask")


def test_rules_that_fail_their_examples_are_not_put_in_force(book: Book) -> None:
    book.write(allow("ls"))
    assert book.decision("ls") == "allow"
    book.write(allow("git") + 'not_match = ["git push"]\n')
    assert (book.decision("git status"), book.decision("ls")) == ("ask", "allow")
    assert "`git push` in `not_match` is matched" in book.changes[0].text


def test_examples_that_passed_are_not_tried_again(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    book.write(allow("git") + 'match = ["git push"]\n')
    assert book.decision("git status") == "allow"
    assert (book.paths.state_dir / FILE).exists()
    monkeypatch.setattr("dragoman.policy.examples.check_examples", None)  # would raise
    book.write(allow("git") + 'match = ["git push"]\n# the same rules\n')
    assert book.decision("git status") == "allow"


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (allow("ls"), allow("ls") + allow("date"), "date"),
        (allow("ls") + deny("rm"), allow("ls"), "no rm"),
        (allow("ls") + ask("git"), allow("ls"), "ask git"),
        (ask("git") + allow("git"), allow("git") + ask("git"), "comes first now"),
        (ask("git"), ask("git") + 'expires = "2027-01-01"\n', "ask git"),
        (ask("git") + "approvals = 3\n", ask("git") + "approvals = 2\n", "ask git"),
    ],
)
def test_a_change_that_widens_is_announced(book: Book, before: str, after: str, told: str) -> None:
    book.write(before)
    book.decision("ls")
    book.write(after)
    book.decision("ls")
    (change,) = book.changes
    assert change.severity == "warning" and "allows more than before" in change.text
    assert told in change.text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (allow("ls") + allow("date"), allow("ls")),
        (allow("ls"), allow("ls") + deny("rm")),
        (allow("git") + ask("git"), ask("git") + allow("git")),
        (allow("ls"), allow("ls", "another name")),
        (deny("rm"), deny("rm") + 'reason = "Ask first."\n'),
    ],
)
def test_a_change_that_does_not_widen_is_not_announced(book: Book, before: str, after: str) -> None:
    book.write(before)
    book.decision("ls")
    book.write(after)
    book.decision("ls")
    assert not book.changes


def test_costly_examples_of_a_repository_do_not_hold_up_other_sessions(
    book: Book, caplog: pytest.LogCaptureFixture
) -> None:
    book.write(allow("ls"))
    lines = ["ls " + " ".join(f"/usr/*/*{number}" for number in range(90)), "; ".join(["cat x"] * 130)]
    examples = ", ".join(f"'{line}'" for line in lines * 60)
    rule = '[[policy.narrow]]\nname = "slow"\ndecision = "deny"\ncommand = [["date"]]\n'
    (book.workspace / ".git").mkdir()
    book.write(f"{rule}not_match = [{examples}]\n", book.workspace / ".dragoman" / "config.toml")
    started = time.thread_time()
    assert (book.decision("date"), book.decision("ls")) == ("deny", "allow")
    assert time.thread_time() - started < 1
    assert "examples were not tried" in caplog.text and "policy check" in caplog.text


@pytest.mark.parametrize("rules", [201, 4000])
def test_a_repository_has_a_bounded_number_of_rules(book: Book, rules: int) -> None:
    rule = '[[policy.narrow]]\ndecision = "deny"\ncommand = [["date"]]\n'
    book.write(rule * rules, book.workspace / ".dragoman" / "config.toml")
    assert book.decision("ls") == "ask"
    (change,) = book.changes
    assert "config.toml" in change.text and (
        "more than 200 rules" in change.text or "too large" in change.text
    )
