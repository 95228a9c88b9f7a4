"""Known ways around rules on commands, none of which may be allowed, and ordinary lines, all of which are understood."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from dragoman.config.model import PolicyRule
from dragoman.policy.decide import Policy
from dragoman.policy.load import act_of_command
from dragoman.policy.rules import make_rules
from dragoman.policy.shell.line import read_line
from dragoman.policy.shell.programs.names import names

CORPUS = Path(__file__).parent / "corpus"
HARMLESS = names(
    """
    echo printf cat head tail ls wc sort uniq cut tr grep rg find sed awk gawk less more man tree date diff file stat du
    true false test base64 xxd shuf fd jq yq bat xargs env timeout time nice nohup command cd pytest history
    """
)
PROGRAMS: list[list[str | list[str]]] = [[program] for program in sorted(HARMLESS)]
PREFIXES: list[list[str | list[str]]] = [
    *PROGRAMS,
    [
        "git",
        ["status", "diff", "log", "show", "grep", "ls-files", "ls-remote", "fetch", "blame", "rev-parse"],
    ],
    ["npm", "test"],
    ["make", "test"],
    ["cargo", "test"],
    ["go", "test"],
    ["tar", ["tf", "-tf"]],
]
RULES = [
    PolicyRule(decision="allow", name="harmless", command=PREFIXES),
    PolicyRule(decision="allow", name="fetching", command=[["curl"], ["wget"]], hosts=["ok.example"]),
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with files that tricks need: links that lead out, and a file that is named like an option."""
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / ".git" / "hooks").mkdir(parents=True)
    (folder / "notes.txt").write_text("hello\n")
    (folder / "way-out").symlink_to(tmp_path)
    (folder / "src" / "link").symlink_to("/etc/passwd")
    (folder / "process-link").symlink_to("/proc/self/cwd")
    (folder / "--output=pwned").touch()
    return folder


@pytest.fixture
def policy() -> Policy:
    return Policy(user=make_rules(RULES, "user", "config.toml"))


def bypasses() -> list[tuple[str, str]]:
    groups = tomllib.loads((CORPUS / "bypasses.toml").read_text())["group"]
    return [(group["source"], line) for group in groups for line in group["lines"]]


def ordinary() -> list[str]:
    groups = tomllib.loads((CORPUS / "ordinary.toml").read_text())["group"]
    return [line for group in groups for line in group["lines"]]


def test_the_corpus_is_large_and_says_where_each_line_comes_from() -> None:
    assert len({line for _, line in bypasses()}) >= 200
    assert len(set(ordinary())) >= 200
    assert all(source.startswith(("CVE-20", "https://")) for source, _ in bypasses())


def test_no_known_bypass_is_allowed(project: Path, policy: Policy) -> None:
    allowed = []
    for source, line in bypasses():
        act = act_of_command(line, cwd=str(project), workspace=str(project))
        verdict = policy.decide(act)
        if verdict.decision == "allow":
            allowed.append(f"{line!r} ({source}): {verdict.why}, {act.facts()['commands']}")
    assert not allowed, "\n".join(allowed)


def test_ordinary_lines_are_understood(project: Path) -> None:
    (project / "--output=pwned").unlink()
    opaque = []
    for line in ordinary():
        found = read_line(line, cwd=str(project), workspace=str(project), home="/home/me")
        if found.opaque is not None:
            opaque.append(f"{line!r}: {found.opaque}")
    assert not opaque, "\n".join(opaque)


def test_harmless_lines_are_allowed(project: Path, policy: Policy) -> None:
    """The corpus would prove nothing if nothing was allowed."""
    (project / "--output=pwned").unlink()
    lines = [
        "git status",
        "git diff HEAD~1 -- src | head -20",
        "grep -rn foo src | sort | uniq -c",
        "cd src && ls -la",
        'for f in notes.txt src; do stat "$f"; done',
        "if [ -f notes.txt ]; then cat notes.txt; fi",
        "timeout 5 pytest -q",
        "find . -name '*.py' | wc -l",
        "sed -n '1,5p' notes.txt",
        "awk '{print $1}' notes.txt",
        "bash -lc 'git log -3 && ls'",
        "CI=1 npm test",
        "ls *.txt",
        "pytest -q > log.txt 2>&1",
        "cat notes.txt 2>/dev/null || true",
        "curl -fsSL -H 'Accept: text/plain' https://ok.example/x.json | jq .",
        "curl -X POST -d '{\"a\": 1}' --max-time 5 https://ok.example:8443/api",
        "wget -qO- --tries=2 https://ok.example/x",
        "make test -j4 --keep-going",
        'echo "$HOME: $PWD[x]"',
    ]
    verdicts = [
        (line, policy.decide(act_of_command(line, cwd=str(project), workspace=str(project))))
        for line in lines
    ]
    assert [(line, verdict.why) for line, verdict in verdicts if verdict.decision != "allow"] == []
