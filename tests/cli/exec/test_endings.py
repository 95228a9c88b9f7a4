"""How `dragoman exec` ends, and its exit codes."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.command_line import CommandLine
from support.pseudo_terminal import CTRL_C


@pytest.mark.parametrize(
    ("prompt", "code", "message"),
    [
        ("stop end_turn", 0, "session dgm_"),
        ("stop refusal", 3, "the agent scripted refused to go on"),
        ("stop max_tokens", 1, "the agent scripted stopped early (stop reason max_tokens)"),
        ("stop cancelled", 130, "session dgm_"),
        ("error -32603 out of tokens", 1, "dragoman: out of tokens"),
        ("crash 3", 1, "dragoman: The agent scripted exited with code 3"),
        ("kill KILL", 1, "dragoman: The agent scripted was ended by SIGKILL"),
    ],
)
def test_the_exit_code_says_how_it_ended(shell: CommandLine, prompt: str, code: int, message: str) -> None:
    done = shell.run("exec", prompt)
    assert done.returncode == code
    assert message in done.stderr


def test_time_over_cancels_the_turn(shell: CommandLine) -> None:
    done = shell.run("exec", "--timeout", "1", "sleep-until-cancel zzz")
    assert (done.returncode, done.stdout) == (124, "zzz\n")
    assert "no end within 1 s (--timeout): cancelled" in done.stderr


def test_time_is_over_even_if_the_agent_does_not_start(shell: CommandLine) -> None:
    shell.configure("--new-hang")
    assert shell.run("exec", "--timeout", "1", "hi").returncode == 124


def test_interrupted_it_cancels_the_turn_first(shell: CommandLine) -> None:
    with shell.start("exec", "cancel-endturn working") as running:
        assert running.stdout is not None and running.stdout.read(7) == "working"
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=30)
        assert running.returncode == 130
        assert "cancelling; Ctrl-C again ends at once" in err


def test_interrupted_twice_it_ends_though_the_agent_does_not_listen(shell: CommandLine) -> None:
    with shell.terminal("exec", "ignore-cancel working") as terminal:
        terminal.until("working")
        terminal.type(CTRL_C)
        terminal.until("Ctrl-C again ends at once")
        terminal.type(CTRL_C)
        assert terminal.end() == 130


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("output", ["--quiet", "--json"])
def test_a_full_disk_is_said_once(shell: CommandLine, output: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "dragoman", "exec", output, "say hello"],
            env=shell.env,
            cwd=shell.folder,
            stdin=subprocess.DEVNULL,
            timeout=60,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.count("No space left on device") == 1
    assert "Traceback" not in done.stderr


def test_nobody_reads_and_it_ends(shell: CommandLine) -> None:
    with shell.start("exec", "flood 100000 100") as running:
        assert running.stdout is not None and running.stderr is not None
        running.stdout.read(10)
        running.stdout.close()
        assert running.wait(timeout=30) == 1
        assert "Traceback" not in running.stderr.read()


def test_nothing_is_left_running(shell: CommandLine, tmp_path: Path) -> None:
    done = shell.run("exec", "child\npid")
    pid = done.stdout.strip().rpartition("pid ")[2]
    assert not Path(f"/proc/{pid}").exists()


def test_without_a_model_nothing_was_answered_and_the_exit_code_says_so(shell: CommandLine) -> None:
    done = shell.run("exec", "-a", "builtin", "What is in this folder?")
    assert done.returncode == 1
    assert "no language model is configured" in done.stdout
    assert "dragoman: the agent builtin has no language model that could answer" in done.stderr
