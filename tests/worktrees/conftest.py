"""A repository with a commit, and commands that are run in it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.command_line import CommandLine


class Checkout:
    """A folder in which the real git is run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, message: str, **files: str) -> str:
        for name, content in files.items():
            (self.folder / name).write_text(content)
        self.git("add", "-A")
        self.git("commit", "-qm", message)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(workspace: Path) -> Checkout:
    made = Checkout(workspace)
    made.git("init", "-q", "-b", "main")
    made.git("config", "user.name", "Me")
    made.git("config", "user.email", "me@example.org")
    made.commit("first", a="1\n2\n3\n", b="b\n")
    return made


@pytest.fixture
def shell(home: Path, workspace: Path) -> CommandLine:
    return CommandLine(home, workspace)
