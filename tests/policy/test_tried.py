"""Ways around rules that were thought of here, by program and by feature of the shell; none may be allowed."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from dragoman.config.model import PolicyRule
from dragoman.policy.decide import Policy
from dragoman.policy.load import act_of_command
from dragoman.policy.rules import make_rules
from dragoman.policy.shell.programs.names import names

from .test_corpus import CORPUS, RULES

GROUPS = tomllib.loads((CORPUS / "tried.toml").read_text())["group"]
ALONE: list[list[str | list[str]]] = [
    [program]
    for program in names(
        "tar rsync ruff make zip gzip ps tee dd install ln mv cp split column watch yes read sqlite3"
    )
]
PROGRAMS: list[list[str | list[str]]] = [
    *ALONE,
    ["ssh", "host"],
    ["docker", ["ps", "images", "logs"]],
    ["pip", ["list", "show"]],
    ["npm", "run", "build"],
    ["python", "-m", "pytest"],
    ["python", "build.py"],
    ["node", "build.js"],
    ["git", ["branch", "stash", "tag", "remote", "config", "archive", "cat-file", "rev-list", "describe"]],
    ["git", ["checkout", "apply", "bundle", "submodule"]],
    ["cargo", ["test", "check"]],
    ["go", ["test", "vet"]],
    ["kubectl", ["get", "logs"]],
    ["gh", ["pr", "issue"]],
]
POLICIES = {
    "programs": [*RULES, PolicyRule(decision="allow", name="more", command=PROGRAMS)],
    "denies": [
        PolicyRule(decision="allow", name="every command", kind=["execute"]),
        PolicyRule(
            decision="deny", name="rm", command=[["rm"], ["git", "push"], ["sudo"], ["terraform", "destroy"]]
        ),
        PolicyRule(decision="deny", name="env", paths=["{workspace}/.env"]),
        PolicyRule(decision="deny", name="out", access="write", outside_workspace=True),
        PolicyRule(decision="deny", name="net", hosts=["evil.example"]),
    ],
}


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: str(group["rules"]))
def test_no_line_that_was_tried_is_allowed(group: dict[str, list[str]], tmp_path: Path) -> None:
    project = tmp_path / "project"
    for folder in ("src", ".git/hooks", "evil/.git"):
        (project / folder).mkdir(parents=True)
    (project / "notes.txt").write_text("hello\n")
    (project / ".env").write_text("key")
    (project / "envlink").symlink_to(".env")
    (project / "way-out").symlink_to(tmp_path)
    policy = Policy(user=make_rules(POLICIES[str(group["rules"])], "user", "config.toml"))
    place = str(project)
    verdicts = {
        line: policy.decide(act_of_command(line, cwd=place, workspace=place)) for line in group["lines"]
    }
    allowed = [
        f"{line!r}: {verdict.why}" for line, verdict in verdicts.items() if verdict.decision == "allow"
    ]
    assert not allowed, "\n".join(allowed)


def test_ordinary_uses_of_the_same_programs_are_allowed(tmp_path: Path) -> None:
    """The lines above would prove nothing if nothing was allowed."""
    (tmp_path / "notes.txt").write_text("hello\n")
    (tmp_path / "src").mkdir()
    policy = Policy(user=make_rules(POLICIES["programs"], "user", "config.toml"))
    lines = [
        *(
            "tar cf x.tar src",
            "tar tf x.tar",
            "rsync -a src/ copy/",
            "make test",
            "zip -r x.zip src",
            "mv a b",
            "cp -r src x",
        ),
        *(
            "git config --get user.name",
            "git stash",
            "npm run build",
            "go test ./...",
            "ln -s a b",
            "tee log.txt",
        ),
        *(
            "docker ps -a",
            "pip list",
            "python -m pytest -q tests",
            "install -m 755 a b",
            "dd if=a of=b",
            "split notes.txt",
        ),
    ]
    asked = []
    for line in lines:
        verdict = policy.decide(act_of_command(line, cwd=str(tmp_path), workspace=str(tmp_path)))
        if verdict.decision != "allow":
            asked.append((line, verdict.why))
    assert asked == []
