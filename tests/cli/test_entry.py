"""What a person sees of the command line itself, above all when something is wrong."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import dragoman
from dragoman.cli import man
from dragoman.cli.commands import COMMANDS

REQUESTS = frozenset({"TH", "SH", "SS", "TP", "PP", "B ", "nf", "fi"})
"""Of roff, in the manual page."""
Run = Callable[..., subprocess.CompletedProcess[str]]


def test_the_version_is_shown(run: Run) -> None:
    assert run("--version").stdout == f"dragoman {dragoman.__version__}\n"


@pytest.mark.parametrize(
    "arguments", [["-h"], ["--help"], ["acp", "-h"], ["agents", "-h"], ["config", "show", "--help"]]
)
def test_help_is_everywhere(run: Run, arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: dragoman")


BAD_USAGE = [
    (["agnets"], 'there is no command "agnets"; did you mean "agents"'),
    (["--wrong"], "No such option"),
    (["acp", "gemini", "--port", "x"], "--port"),
    (["acp", "gemini", "--port", "70000"], "--port"),
    (["acp", "gemini", "--host", "127.0.0.1"], "--host needs --port"),
    (
        ["acp", "gemini", "--host", "0.0.0.0", "--port", "1"],
        "--host 0.0.0.0 is open to other machines: it needs --token",
    ),
    (["acp", "gemini", "--host", "::", "--port", "1"], "it needs --token"),
    (["acp", "gemini", "--host", "example.org", "--port", "1"], "it needs --token"),
    (["acp", "gemini", "--port", "1", "--token", ""], "--token is empty"),
    (["acp", "gemini", "--connect", "maybe"], "--connect"),
    (["acp", "gemini", "--log-level", "loud"], "--log-level"),
    (["acp", "gemini", "extra"], "unexpected extra argument"),
    (
        ["acp", "gemini", "--sandbox", "bublewrap"],
        'there is no sandbox "bublewrap"; did you mean "bubblewrap"',
    ),
    (
        ["acp", "gemini", "--log-file", "/nowhere/log"],
        "option --log-file: cannot write the log file /nowhere/log: No such",
    ),
    (["acp", "gemni"], 'there is no agent "gemni": did you mean gemini?'),
    (["--acp", "gemni"], 'there is no agent "gemni": did you mean gemini?'),
    (["--acp", "gemni", "--log-level", "debug"], 'there is no agent "gemni": did you mean gemini?'),
    (["acp", "xyzzy"], "`dragoman agents list` shows the names"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD_USAGE, ids=lambda value: " ".join(value)[:50])
def test_bad_usage_is_one_message_and_exit_code_2(run: Run, arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == "", "stdout belongs to the protocol"


@pytest.mark.parametrize("arguments", [["acp"], ["acp", "gemini"], ["agents", "list"], ["config", "show"]])
def test_a_mistake_in_the_configuration_is_one_message_and_exit_code_2(
    run: Run, home: Path, arguments: list[str]
) -> None:
    (home / "config.toml").write_text("[limits]\nmax_sesions = 3\n")
    done = run(*arguments)
    assert done.returncode == 2
    expected = (
        f'dragoman: {home}/config.toml: limits.max_sesions: there is no such key; did you mean "max_sessions"'
    )
    assert done.stderr.startswith(expected)
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def test_a_mistake_in_the_environment_is_named(run: Run) -> None:
    done = run("acp", env={"DRAGOMAN_LIMITS_MAX_SESIONS": "3"})
    assert done.returncode == 2
    assert 'did you mean "DRAGOMAN_LIMITS_MAX_SESSIONS"' in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        *(["sessions", name, "dgm_nowhere"] for name in ("close", "export", "path", "show", "take")),
        ["sessions", "list"],
        ["doctor", "store"],
        ["backup", "here.tar"],
        ["restore", "nowhere.tar"],
    ],
    ids=" ".join,
)
def test_a_command_starts_by_itself(run: Run, arguments: list[str]) -> None:
    """Most tests of commands run them where their modules are loaded already (`CommandLine.run`)."""
    done = run(*arguments)
    assert "Traceback" not in done.stderr
    assert done.stdout or done.stderr.startswith("dragoman: ")


RECORD = """
import sys, types
stand_in = types.ModuleType("dragoman.cli.acp.run")
def run(options, config, paths):
    sys.stderr.write(repr(options) + "\\n")
    sys.stderr.write("modules " + " ".join(sys.modules) + "\\n")
    return 7
stand_in.run = run
sys.modules["dragoman.cli.acp.run"] = stand_in
from dragoman.cli.entry import main
main(sys.argv[1:])
"""


def start(home: Path, *arguments: str, stdin: int = subprocess.DEVNULL) -> subprocess.CompletedProcess[str]:
    """Run `dragoman` up to the point where the gateway would start."""
    return subprocess.run(
        [sys.executable, "-c", RECORD, *arguments],
        env={"DRAGOMAN_HOME": str(home), "DRAGOMAN_TOKEN": "s3cret"},
        cwd=home,
        stdin=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("first", ["acp", "--acp"])
def test_both_spellings_start_the_same_thing(home: Path, first: str) -> None:
    done = start(home, first, "gemini")
    assert done.returncode == 7
    assert done.stderr.startswith("AcpOptions(agent='gemini', host=None, port=None, token=None")


def test_stdio_may_be_asked_for(run: Run, home: Path) -> None:
    done = start(home, "acp", "--stdio", "gemini")
    assert done.returncode == 7 and "agent='gemini', host=None, port=None" in done.stderr
    assert "--stdio and --port cannot be combined" in run("acp", "--stdio", "--port", "0").stderr


def test_all_options_arrive(home: Path) -> None:
    done = start(
        home, "acp", "gemini", "--host", "0.0.0.0", "--port", "0", "--connect", "never", "--sandbox", "local"
    )
    assert done.returncode == 7
    expected = "agent='gemini', host='0.0.0.0', port=0, token='s3cret', connect='never', sandbox='local', worktree=None"
    assert f"AcpOptions({expected})" in done.stderr


def test_the_start_for_an_editor_loads_nothing_heavy(home: Path) -> None:
    loaded = start(home, "acp", "gemini").stderr.split("modules ")[1].split()
    assert "dragoman.config.load" in loaded
    heavy = {"click", "asyncio", "typing_extensions", "importlib.metadata", "tomllib", "hashlib", "difflib"}
    assert not heavy.intersection(loaded)


def test_a_person_in_a_terminal_is_told_what_it_is_for(home: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    with open(ours, "rb"), open(theirs, "rb"):
        done = start(home, "acp", "gemini", stdin=theirs)
    assert done.returncode == 7, "it runs all the same"
    assert "meant to be started by an editor" in done.stderr
    assert '"args": ["acp", "gemini"]' in done.stderr
    assert done.stdout == ""


def test_an_editor_is_told_nothing(home: Path) -> None:
    assert "editor" not in start(home, "acp", "gemini").stderr.split("modules")[0]


def test_the_manual_page_has_every_command_and_option() -> None:
    text = "\n".join(man.page())
    for name in COMMANDS:
        assert f".SS dragoman {name}" in text
    assert "\\-\\-no\\-wait" in text
    unknown = [
        line for line in text.splitlines() if line.startswith(("'", ".")) and line[1:3] not in REQUESTS
    ]
    assert unknown == []
