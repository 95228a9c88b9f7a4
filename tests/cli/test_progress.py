"""What takes long says so on a terminal, and leaves nothing behind."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dragoman.cli.terminal.progress import waiting
from support.command_line import CommandLine


def test_a_slow_agent_is_said_to_start_on_a_terminal(shell: CommandLine, tmp_path: Path) -> None:
    go = tmp_path / "go"
    wait = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.05)\nraise SystemExit(3)"
    shell.configure(agents={"slow": {"command": [sys.executable, "-c", wait]}})
    with shell.terminal("agents", "check", "slow") as terminal:
        terminal.until("starting slow… 1 s")
        go.touch()
        assert terminal.end() == 1
        assert "slow: failed" in terminal.shown


def test_nothing_is_shown_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with waiting("working", slow=0):
        pass
    assert capsys.readouterr().err == ""
