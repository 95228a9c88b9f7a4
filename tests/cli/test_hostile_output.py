"""Nothing that an agent, a file or a program says commands the terminal, whichever command shows it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.terminal import clean, escape, escape_json
from support.clients.drawn_terminal import DrawnTerminal
from support.command_line import CommandLine
from support.gateway_process import agent

HOSTILE = (
    "A\x1b]52;c;ZXZpbA==\x07"  # writes the clipboard
    "B\x1b]0;evil title\x07"
    "C\x9b2J\x9d0;evil\x9c"  # the same with C1
    "D\u202eE\u2066F\u200f"  # turns the order around
    "G\x1bPq#0\x1b\\\x1b_x\x1b\\"  # DCS, APC
    "H\x1b[2J\x1b[8m\x1b[1;1H"  # clears, hides, moves
    "I\rJ\x08K\x0bL\x7f\u2028M\U000e0041"
)
OURS = re.compile(r"\x1b\[(?:[0-79]|1|3[0-7]|9[0-7]|;)+m|\x1b\[D|\r\n")
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)

AGENT = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    hostile = json.loads(%r)
    info = {"name": hostile, "title": hostile, "version": hostile}
    result = {"protocolVersion": 1, "agentCapabilities": {hostile: {}}, "agentInfo": info,
              "authMethods": [{"id": hostile, "name": hostile}]}
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    answer |= {"result": result} if %d else {"error": {"code": -32603, "message": hostile}}
    sys.stdout.write(json.dumps(answer) + chr(10))
    sys.stdout.flush()
"""


def check(shown: str) -> None:
    left = OURS.sub("", shown)
    assert UNSAFE.search(left) is None, ascii(left)


def show(shell: CommandLine, *arguments: str) -> str:
    """What a command shows on a terminal, which has nothing in it that is not ours."""
    with shell.terminal(*arguments) as terminal:
        terminal.end()
        check(terminal.raw)
        assert "Traceback (most" not in terminal.shown, terminal.shown
        return terminal.shown


def message(update: str, /, **members: object) -> str:
    return "update " + json.dumps({"sessionUpdate": update, **members})


@pytest.fixture
def told(shell: CommandLine) -> str:
    """A session in which everything that an agent may say is hostile."""
    text = {"type": "text", "text": HOSTILE}
    lines = [
        message("session_info_update", title=HOSTILE),
        message("agent_message_chunk", content=text),
        message("agent_thought_chunk", content=text),
        message("tool_call", toolCallId="t", title=HOSTILE, kind="other", status="in_progress"),
        message(
            "tool_call_update",
            toolCallId="t",
            status="completed",
            content=[{"type": "content", "content": text}],
        ),
        message("plan", entries=[{"content": HOSTILE, "priority": "high", "status": "pending"}]),
    ]
    done = shell.run("exec", "-", stdin="\n".join(lines))
    assert done.returncode == 0, done.stderr
    return done.stderr.strip().splitlines()[-1].removeprefix("session ")


def test_sessions_that_hold_hostile_text_are_shown_harmlessly(shell: CommandLine, told: str) -> None:
    for arguments in (
        ["list"],
        ["list", "--json"],
        ["show", told],
        ["show", told, "--json"],
        ["export", told],
        ["export", told, "--format", "markdown"],
    ):
        shown = show(shell, "sessions", *arguments)
        assert "A]52;c;ZXZpbA" in shown or "A\\u001b]52" in shown or told[:12] in shown
    piped = shell.run("sessions", "export", told, "--format", "markdown")
    assert "\x9b" in piped.stdout, "for a program it is what was said"


def test_a_session_that_is_attached_to_is_shown_harmlessly(shell: CommandLine, told: str) -> None:
    with DrawnTerminal(shell, "sessions", "attach", told, "--read-only") as terminal:
        terminal.until("No process runs this session any more.")
        terminal.type("q")
        assert terminal.end() == 0
    assert "A]52;c;ZXZpbA" in terminal.shown
    for part in ("\x1b]", "\x1bP", "\x1b_", "\x1b[8m", "\x1b[2J", "\x9b", "\x9d", "\u202e", "\u2066", "\x7f"):
        assert part not in terminal.raw, ascii(part)


def test_what_an_agent_says_now_is_shown_harmlessly(shell: CommandLine) -> None:
    text = {"type": "text", "text": HOSTILE}
    script = "\n".join(
        [
            message("agent_message_chunk", content=text),
            message("tool_call", toolCallId="t", title=HOSTILE, kind="other", status="in_progress"),
            message("agent_thought_chunk", content=text),
            f"error -32603 {HOSTILE}",
        ]
    )
    for options in ([], ["--json"], ["-q"]):
        show(shell, "exec", *options, script)


@pytest.mark.parametrize("answers", [True, False])
def test_an_agent_that_is_checked_is_shown_harmlessly(shell: CommandLine, answers: bool) -> None:
    command = [sys.executable, "-c", AGENT % (json.dumps(HOSTILE), answers)]
    dying = [sys.executable, "-c", f"import sys; sys.stderr.write({HOSTILE!r}); sys.exit(3)"]
    shell.configure(agents={"evil": {"command": command}, "dying": {"command": dying}})
    shown = show(shell, "agents", "check", "evil", "dying")
    assert "A]52;c;" in shown
    show(shell, "agents", "check", "evil", "--json")
    show(shell, "agents", "list")


@pytest.mark.parametrize("format", ["text", "json"])
def test_the_log_on_a_terminal_is_harmless(shell: CommandLine, format: str) -> None:
    shell.configure(log={"level": "debug", "format": format, "prompts": True})
    (shell.folder / ".dragoman").mkdir()
    quoted = json.dumps(HOSTILE).replace("\\ud", "\\uD").replace("\\uDb40\\uDc41", "\\U000e0041")
    (shell.folder / ".dragoman" / "config.toml").write_text(f"[agents.{quoted}]\ncommand = [{quoted}]\n")
    shown = show(shell, "exec", f"mutter {HOSTILE}\n" + message("no_such_kind", text=HOSTILE))
    assert "\\x1b]52" in shown or "\\u001b]52" in shown, "it is seen, as text"


def test_settings_and_findings_are_shown_harmlessly(shell: CommandLine, tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text(f"#!{sys.executable}\nimport sys\nsys.stderr.write({HOSTILE!r})\nsys.exit(1)\n")
    tool.chmod(0o700)
    box = {"kind": "podman", "image": HOSTILE, "engine": [str(tool)]}
    far = {"kind": "remote", "url": "wss://far.example/acp", "headers": {"X": HOSTILE}}
    mine = agent(HOSTILE)
    shell.configure(agents={"far": far, "mine": mine}, sandboxes={"box": box})
    for arguments in (
        ["config", "show"],
        ["config", "show", "--json"],
        ["doctor"],
        ["doctor", "--json"],
        ["agents", "list"],
    ):
        show(shell, *arguments)


def test_errors_are_shown_harmlessly(shell: CommandLine) -> None:
    name = HOSTILE
    for arguments in (
        ["exec", "-a", name, "hello"],
        ["sessions", "show", name],
        ["sessions", "export", name],
        [name],
        ["config", "path", name],
        ["agents", "check", name],
        ["tokens", "create", name],
        ["tokens", "revoke", name],
        ["exec", f"--{name}", "x"],
    ):
        show(shell, *arguments)
    (shell.home / "config.toml").write_text(f"[{json.dumps('x' + chr(0x9B) + chr(0x202E))}]\na = 1\n")
    assert "there is no such key" in show(shell, "agents", "list")


def test_a_folder_with_a_hostile_name_is_shown_harmlessly(shell: CommandLine) -> None:
    shell.folder = shell.folder / HOSTILE
    shell.folder.mkdir()
    (shell.folder / ".git").mkdir()
    session = shell.session()
    show(shell, "sessions", "list")
    show(shell, "sessions", "show", session)
    show(shell, "config", "path", "--all")


def test_our_own_colours_stay(shell: CommandLine) -> None:
    with shell.terminal("agents", "list") as terminal:
        terminal.end()
        assert "\x1b[90m" in terminal.raw
    assert "\x1b" not in shell.run("agents", "list").stdout


def test_what_cannot_be_encoded_is_no_traceback(shell: CommandLine) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "agents", "list"],
        env={**shell.env, "PYTHONIOENCODING": "ascii"},
        cwd=shell.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr


def test_the_protocol_on_a_terminal_is_harmless(shell: CommandLine) -> None:
    """A person who tries `dragoman acp` by hand reads messages with an agent's words in them."""
    command = [sys.executable, "-c", AGENT % (json.dumps(HOSTILE), True)]
    shell.configure(agents={"evil": {"command": command}})
    with shell.terminal("acp", "evil") as terminal:
        terminal.until("waits for messages")
        request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
        terminal.type(json.dumps(request) + "\n")
        terminal.until("agentCapabilities")
        terminal.type("\x04")
        terminal.end()
        check(terminal.raw)


def test_cleaning_leaves_text_alone() -> None:
    fine = "Zürich — 日本語 👩‍👩‍👧 עברית\n\tindented"
    assert clean(fine) == fine
    assert clean(HOSTILE) == re.sub(UNSAFE, "", HOSTILE)
    assert escape("a\x1b[2J\n\u202e\x9b\ud800") == "a\\x1b[2J\\n\\u202e\\x9b\\ud800"
    assert json.loads(escape_json(json.dumps(HOSTILE, ensure_ascii=False))) == HOSTILE


def test_every_command_line_output_passes_the_guard() -> None:
    """Nothing in the command line writes to descriptors 1 and 2 by itself."""
    source = Path(sys.modules["dragoman.terminal"].__file__ or "").parent / "cli"
    for file in sorted(source.rglob("*.py")):
        text = file.read_text()
        assert not re.search(r"os\.write\((1|2)\b|sys\.__std|click\.(secho|style)|(?<![\w.])print\(", text), (
            file
        )
