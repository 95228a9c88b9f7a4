"""An agent's program is shown with its installation, and with nothing else of the home folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.sandbox.bubblewrap import SYSTEM
from dragoman.sandbox.programs import needed_files


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_a_program_of_the_system_needs_nothing(home: Path) -> None:
    assert needed_files(["sh", "-c", "x"], "/usr/bin:/bin", SYSTEM) == []


def test_a_node_agent_brings_its_packages_and_its_node(home: Path) -> None:
    node = home / ".nvm" / "v22"
    program(node / "bin" / "node")
    (node / "lib").mkdir()
    script = program(node / "lib" / "node_modules" / "agent" / "cli.js", "#!/usr/bin/env node\n")
    (node / "bin" / "agent").symlink_to("../lib/node_modules/agent/cli.js")
    assert script.exists()
    assert needed_files(["agent", "--acp"], str(node / "bin"), SYSTEM) == [node]


def test_a_tool_environment_brings_itself_and_its_python(home: Path) -> None:
    python = home / ".local/share/uv/python/cpython-3.12"
    program(python / "bin" / "python3.12")
    (python / "lib").mkdir()
    tool = home / ".local/share/uv/tools/kimi"
    program(tool / "bin" / "kimi", f"#!{tool}/bin/python\n")
    (tool / "bin" / "python").symlink_to(python / "bin" / "python3.12")
    (tool / "pyvenv.cfg").touch()
    (home / ".local/bin").mkdir()
    (home / ".local/bin/kimi").symlink_to(tool / "bin" / "kimi")
    found = needed_files(["kimi"], str(home / ".local/bin"), SYSTEM)
    assert set(found) == {home / ".local/bin/kimi", tool, python}


@pytest.mark.parametrize("folder", [".local/bin", ".cargo/bin", "bin", "tools"])
def test_a_lone_program_is_shown_alone(home: Path, folder: str) -> None:
    (home / ".local" / "lib").mkdir(parents=True)
    lone = program(home / folder / "agent")
    (home / ".cargo").mkdir(exist_ok=True)
    (home / ".cargo" / "credentials.toml").touch()
    assert needed_files(["agent"], str(lone.parent), SYSTEM) == [lone]


def test_a_script_is_shown_without_its_folder(home: Path) -> None:
    script = program(home / "projects" / "agent.py")
    assert needed_files(["sh", str(script), "relative", "/nowhere"], "/usr/bin", SYSTEM) == [script]


def test_links_in_a_circle_are_survived(home: Path) -> None:
    (home / "a").symlink_to(home / "b")
    (home / "b").symlink_to(home / "a")
    assert needed_files([str(home / "a")], "", SYSTEM) == []
