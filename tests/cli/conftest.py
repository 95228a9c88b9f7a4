"""`dragoman` as a person runs it: a process of its own with a home of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.command_line import CommandLine

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """The only directory on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


@pytest.fixture
def run(tmp_path: Path, home: Path, programs: Path) -> Run:
    project = tmp_path / "project"
    project.mkdir()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}

    def run_it(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "dragoman", *arguments],
            env={**inherited, "DRAGOMAN_HOME": str(home), "PATH": str(programs), **(env or {})},
            cwd=project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run_it


@pytest.fixture
def shell(home: Path, workspace: Path) -> CommandLine:
    """Commands with a scripted agent, run in a workspace."""
    return CommandLine(home, workspace)
