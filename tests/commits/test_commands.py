"""`dragoman changes --uncommitted` and `dragoman commit`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command_line import CommandLine
from support.commits.repository import Repository
from support.rpc_peer import PATIENCE


@pytest.fixture
def shell(home: Path, repository: Repository) -> CommandLine:
    made = CommandLine(home, repository.folder)
    made.env["HOME"] = str(repository.home)
    made.configure(checkpoints={"patience": PATIENCE})
    return made


def worked(shell: CommandLine, script: str) -> str:
    """A session with one turn, without an owner now."""
    done = shell.run("exec", script)
    assert done.returncode == 0, done.stderr
    return done.stderr.split()[-1]


def test_what_is_not_committed_is_shown_in_three_ways(shell: CommandLine, repository: Repository) -> None:
    repository.commit(a="1\n")
    session = worked(shell, f"sh echo 2 > {repository.folder}/a")
    repository.write("by hand\n\u202e", "1\n")
    for words in ((), (session,)):
        done = shell.run("changes", *words, "--uncommitted")
        assert (done.returncode, done.stdout.encode()) == (0, repository.plain_diff())
    done = shell.run("changes", "--uncommitted", "--stat")
    assert done.stdout.splitlines()[1].split() == ["M", "a", "+1", "-1"]
    assert "by hand\\n" in done.stdout and "\u202e" not in done.stdout
    told = json.loads(shell.run("changes", "--uncommitted", "--json").stdout)
    assert (told["branch"], [file["status"] for file in told["files"]]) == ("main", ["modified", "added"])
    done = shell.run("changes", "--uncommitted", "--turn", "1")
    assert (done.returncode, "leave out --turn" in done.stderr) == (2, True)


def test_no_commit_and_no_branch_are_said(shell: CommandLine, repository: Repository) -> None:
    done = shell.run("changes", "--uncommitted", "--stat")
    assert "there is no commit yet" in done.stderr
    repository.commit(a="1\n")
    repository.git("checkout", "-q", "--detach")
    done = shell.run("changes", "--uncommitted", "--stat")
    assert (done.returncode, "detached" in done.stderr) == (0, True)
