"""Completion in shells."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.command_line import CommandLine

Run = Callable[..., subprocess.CompletedProcess[str]]


def completed(run: Run, line: str) -> list[str]:
    """What bash is offered at the end of the line."""
    words = line.split(" ")
    env = {"_DRAGOMAN_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = run(env=env)
    assert not done.stderr
    return [item.split(",", 1)[1] for item in done.stdout.split()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell(run: Run, shell: str) -> None:
    env = {"PATH": str(Path(bash).parent)} if (bash := shutil.which("bash")) else {}
    done = run("completion", shell, env=env)
    assert (done.returncode, "_DRAGOMAN_COMPLETE" in done.stdout) == (0, True), done.stderr
    if shell == "bash":
        subprocess.run([bash or "bash", "-n"], input=done.stdout, text=True, check=True)


def test_commands_options_and_agents(run: Run) -> None:
    assert completed(run, "dragoman se") == ["serve", "sessions", "service"]
    assert completed(run, "dragoman sessions exp") == ["export"]
    assert "--no-check" in completed(run, "dragoman agents add --no")
    assert completed(run, "dragoman exec -a cod") == ["codex", "codex-acp"]
    assert completed(run, "dragoman acp gem") == ["gemini"]
    assert completed(run, "dragoman sessions show dgm_") == [], "no store yet"


def test_a_broken_configuration_completes_nothing_and_says_nothing(run: Run, home: Path) -> None:
    (home / "config.toml").write_text("[")
    assert completed(run, "dragoman exec -a cod") == []


def test_sessions_by_their_id(shell: CommandLine) -> None:
    session = shell.session()
    asked = {
        "_DRAGOMAN_COMPLETE": "zsh_complete",
        "COMP_WORDS": f"dragoman sessions show {session[:8]}",
        "COMP_CWORD": "3",
    }
    program = [sys.executable, "-m", "dragoman"]
    done = subprocess.run(program, env={**shell.env, **asked}, capture_output=True, text=True, check=True)
    kind, found, help = done.stdout.splitlines()[:3]
    assert (kind, found) == ("plain", session)
    assert help.startswith("scripted")
