"""What is remembered of an act is never wider than its facts."""

from __future__ import annotations

import pytest

from dragoman.policy.act import Act, PathFact, Tool
from dragoman.policy.decide import Policy
from dragoman.policy.load import act_of_command
from dragoman.policy.memory.memory import Memory
from dragoman.policy.memory.pattern import Pattern, patterns_of, read_text

ROOT = "/nowhere/project"


def act(line: str, cwd: str = ROOT) -> Act:
    return act_of_command(line, cwd=cwd, workspace=ROOT)


def memory(patterns: list[Pattern] | None) -> Memory:
    assert patterns is not None
    return Memory(
        id="m_1",
        pattern=patterns,
        scope="project",
        root=ROOT,
        session="s",
        call="c",
        who="local",
        when="2026-11-18",
    )


def decided(asked: Act, remembered: Memory) -> str:
    return Policy().decide(asked, remembered.rules()).decision


@pytest.mark.parametrize(
    "line",
    [
        "pytest -q tests",
        "git diff --output patch.txt",
        "sed -i s/a/b/ notes.txt",
        "sort < a > b",
        "cat /etc/hostname",
        "cd sub && pytest -q && git status",
        "CI=1 npm test 2>&1",
        "timeout 5 make test",
        "echo 'two words' > out.txt",
        "./run.sh a",
    ],
)
def test_an_act_is_allowed_again_by_what_was_remembered_of_it(line: str) -> None:
    assert decided(act(line), memory(patterns_of(act(line)))) == "allow"


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("pytest -q", "pytest -q tests"),
        ("pytest -q", "pytest"),
        ("pytest -q", "pytest -q; rm -rf src"),
        ("pytest -q", "pytest -q > src/app.py"),
        ("pytest -q", "PYTEST_ADDOPTS=--co pytest -q"),
        ("pytest -q", "sudo pytest -q"),
        ("pytest -q", "./pytest -q"),
        ("pytest -q", "pytest -q $MORE"),
        ("pytest -q", "$(pytest -q)"),
        ("sort < a > b", "sort < b > a"),
        ("sort < a > b", "sort < a > c"),
        ("rm a.txt", "cd sub && rm a.txt"),
        ("rm a.txt", "cd / && rm a.txt"),
        ("cat notes", "cat notes > notes.txt"),
        ("prog '>b'", "prog >b"),
        ("npm test", "cd /tmp && npm test"),
        ("git push origin main", "git push origin main --force"),
        ("curl https://example.org/a", "curl https://example.com/a"),
    ],
)
def test_nothing_else_is_allowed_by_it(line: str, other: str) -> None:
    assert decided(act(other), memory(patterns_of(act(line)))) == "ask"


@pytest.mark.parametrize(
    "line",
    [
        "echo $(date)",
        "eval ls",
        "python -c 'print(1)'",
        "ls *.py",
        "for f in a b; do frob $f; done",
        "cat $OTHER/x",
        "cd src",
        "; ".join(f"make t{number}" for number in range(21)),
        "frob " + "x" * 20_000,
    ],
)
def test_what_is_not_wholly_known_is_answered_once_only(line: str) -> None:
    assert patterns_of(act(line)) is None


def test_a_file_is_remembered_with_its_access_and_kind() -> None:
    edit = Act(
        workspace=ROOT, tool="Edit", kind="edit", paths=(PathFact(f"{ROOT}/a.py", "write", outside=False),)
    )
    kept = memory(patterns_of(edit))
    assert decided(edit, kept) == "allow"
    assert kept.words == "changing a.py"
    other = PathFact(f"{ROOT}/b.py", "write", outside=False)
    assert decided(Act(workspace=ROOT, kind="edit", paths=(other,)), kept) == "ask"
    assert decided(Act(workspace=ROOT, kind="delete", paths=edit.paths), kept) == "ask"
    both = Act(workspace=ROOT, kind="edit", paths=(*edit.paths, other))
    assert decided(both, kept) == "ask"


def test_a_read_does_not_become_a_write() -> None:
    read = Act(workspace=ROOT, kind="read", paths=(PathFact("/etc/x", "read", outside=True),))
    kept = memory(patterns_of(read))
    assert decided(read, kept) == "allow"
    written = Act(workspace=ROOT, kind="read", paths=(PathFact("/etc/x", "write", outside=True),))
    assert decided(written, kept) == "ask"


def test_hosts_and_tools_of_servers_are_remembered_by_name() -> None:
    fetch = Act(workspace=ROOT, kind="fetch", hosts=("example.org",))
    assert decided(fetch, memory(patterns_of(fetch))) == "allow"
    assert decided(Act(workspace=ROOT, kind="fetch", hosts=("a.org",)), memory(patterns_of(fetch))) == "ask"
    tool = Act(workspace=ROOT, kind="other", mcp=Tool("db", "query"))
    assert decided(tool, memory(patterns_of(tool))) == "allow"
    assert decided(Act(workspace=ROOT, mcp=Tool("db", "drop")), memory(patterns_of(tool))) == "ask"


@pytest.mark.parametrize(
    "one",
    [
        Act(workspace=ROOT, kind="fetch", hosts=("?",)),
        Act(workspace=ROOT, kind="fetch", hosts=("*",)),
        Act(workspace=ROOT, mcp=Tool("*", "query")),
        Act(workspace=ROOT, mcp=Tool("a", "b__c"), label_only=True),
        Act(workspace=ROOT, kind="edit", label_only=True),
        Act(workspace=ROOT, kind="edit", tool="mine"),
        Act(workspace=ROOT, kind="edit", paths=(PathFact(f"{ROOT}/*", "write", outside=False),)),
        Act(workspace=ROOT, kind="edit", paths=(PathFact("?", "write", outside=True),)),
        Act(workspace=ROOT, kind="edit", opaque="a command of an unknown shape"),
    ],
)
def test_a_name_that_is_a_wildcard_or_a_label_alone_is_not_remembered(one: Act) -> None:
    assert patterns_of(one) is None


def test_a_label_with_files_is_remembered_for_that_tool_alone() -> None:
    paths = (PathFact(f"{ROOT}/a", "read", outside=False),)
    asked = Act(workspace=ROOT, tool="peek", kind="read", paths=paths, label_only=True)
    kept = memory(patterns_of(asked))
    assert decided(asked, kept) == "allow"
    assert decided(Act(workspace=ROOT, tool="poke", kind="read", paths=paths, label_only=True), kept) == "ask"


def test_what_was_allowed_in_a_sandbox_is_not_allowed_without_one() -> None:
    boxed = Act(workspace=ROOT, kind="fetch", hosts=("example.org",), boxed=True)
    kept = memory(patterns_of(boxed))
    assert decided(boxed, kept) == "allow"
    assert decided(Act(workspace=ROOT, kind="fetch", hosts=("example.org",)), kept) == "ask"


def test_a_built_in_deny_is_not_lifted() -> None:
    line = f"rm {ROOT}/.git/config"
    assert decided(act(line), memory(patterns_of(act(line)))) == "deny"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("pytest -q tests", "run pytest -q tests"),
        ("echo 'two words' > out.txt", "run echo 'two words' >out.txt"),
        ("sort < a > b", "run sort <a >b"),
    ],
)
def test_a_pattern_is_one_line_that_means_the_same(line: str, text: str) -> None:
    (pattern,) = patterns_of(act(line)) or []
    assert pattern.text(ROOT) == text
    assert read_text(text, [pattern], ROOT) == pattern


@pytest.mark.parametrize(
    ("line", "edited", "then"),
    [
        ("pytest -q tests", "run pytest *", "pytest -x other"),
        ("cat notes/a", "run cat *", "cat notes/b"),
        ("echo hi > a", "run echo *", "echo ho > b"),
        ("cat /etc/hostname", "run cat *", "cat notes /etc/hostname"),
    ],
)
def test_a_person_may_widen_a_command_to_its_beginning(line: str, edited: str, then: str) -> None:
    wide = memory([read_text(edited, patterns_of(act(line)) or [], ROOT)])
    assert decided(act(line), wide) == "allow"
    assert decided(act(then), wide) == "allow"
    assert decided(act(f"{then}; rm x"), wide) == "ask"
    assert decided(act("cat /etc/passwd"), wide) == "ask"


def test_a_person_may_widen_a_file_to_a_folder() -> None:
    edit = Act(workspace=ROOT, kind="edit", paths=(PathFact(f"{ROOT}/src/a.py", "write", outside=False),))
    shown = patterns_of(edit) or []
    assert [pattern.text(ROOT) for pattern in shown] == ["write src/a.py"]
    wide = memory([read_text("write src/**", shown, ROOT)])
    other = Act(workspace=ROOT, kind="edit", paths=(PathFact(f"{ROOT}/src/x/b.py", "write", outside=False),))
    assert decided(edit, wide) == decided(other, wide) == "allow"
    git = Act(
        workspace=ROOT, kind="edit", paths=(PathFact(f"{ROOT}/src/.git/config", "write", outside=False),)
    )
    assert decided(git, wide) == "deny"


def test_a_pattern_that_a_person_wrote_is_shown_as_it_was_written() -> None:
    edit = Act(workspace=ROOT, kind="edit", paths=(PathFact(f"{ROOT}/src/a.py", "write", outside=False),))
    wide = read_text("write 'a b/**' /etc/x", patterns_of(edit) or [], ROOT)
    assert wide.text(ROOT) == "write 'a b/**' /etc/x"
    assert read_text("run pytest *", [], ROOT).text(ROOT) == "run pytest *"
    assert read_text("reach a.org b.org", [], ROOT).text(ROOT) == "reach a.org b.org"
    assert read_text("use db/query", [], ROOT).text(ROOT) == "use db/query"
