"""A home folder with settings of editors, and commands that are run in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command_line import CommandLine


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """The user's home folder."""
    folder = tmp_path / "user"
    folder.mkdir()
    return folder


@pytest.fixture
def shell(tmp_path: Path, user: Path) -> CommandLine:
    home = tmp_path / "dragoman"
    home.mkdir()
    commands = CommandLine(home, tmp_path)
    commands.env.update(HOME=str(user), PATH="/usr/bin:/bin")
    for name in ("XDG_CONFIG_HOME", "NVIM_APPNAME", "VIRTUAL_ENV"):
        commands.env.pop(name, None)
    return commands
