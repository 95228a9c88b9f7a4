"""What `dragoman exec` prints."""

from __future__ import annotations

import json

import pytest

from support.command_line import CommandLine
from support.gateway_process import agent


def test_the_answer_is_on_stdout_and_the_session_on_stderr(shell: CommandLine) -> None:
    done = shell.run("exec", "say Hello\nsay  world")
    assert (done.returncode, done.stdout) == (0, "Hello world\n")
    (line,) = done.stderr.splitlines()
    assert line.startswith("session dgm_")


def test_tool_calls_are_a_line_each_on_stderr(shell: CommandLine) -> None:
    done = shell.run("exec", "think hm\nsay First.\ntool x\ntool y failed\nsay Second.")
    assert done.stdout == "First.\nSecond.\n", "what follows a tool call is another message"
    assert done.stderr.splitlines()[:-1] == ["● Tool x … done", "● Tool y … failed"]


def test_quiet_prints_the_last_message_alone(shell: CommandLine) -> None:
    done = shell.run("exec", "--quiet", "say I will look.\ntool x\nsay It is \nsay 4")
    assert (done.returncode, done.stdout, done.stderr) == (0, "It is 4\n", "")


OUTPUT = (
    'update {"sessionUpdate":"tool_call","toolCallId":"c","title":"Count","kind":"execute","status":"pending",'
    '"content":[{"type":"content","content":{"type":"text","text":%s}}]}\n'
    'update {"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed"}'
)


def test_output_of_tools_is_shown_up_to_a_bound(shell: CommandLine) -> None:
    text = json.dumps("```\n" + "".join(f"{number}\n" for number in range(1, 31)) + "```")
    done = shell.run("exec", OUTPUT % text)
    shown = ["● Count … done", *(f"  {number}" for number in range(1, 21)), "  … 10 more lines"]
    assert done.stderr.splitlines()[:-1] == shown
    session = done.stderr.split()[-1]
    exported = shell.run("sessions", "export", session, "--format", "md").stdout
    assert "- *Count*\n\n<details><summary>Output</summary>\n\n```\n1\n2\n" in exported
    assert "30\n```\n\n</details>" in exported


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_a_command_of_the_builtin_agent_prints_what_it_brought(shell: CommandLine, quiet: list[str]) -> None:
    (shell.folder / "a.txt").write_text("TODO tidy up\n")
    done = shell.run("exec", *quiet, "-a", "builtin", "/search TODO")
    assert (done.returncode, done.stdout) == (0, "a.txt:1: TODO tidy up\n")
    assert "tidy up" not in done.stderr, "once is enough"


def test_json_prints_every_message_and_a_result(shell: CommandLine) -> None:
    done = shell.run("exec", "--json", "say Hello\ntool x")
    *messages, result = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [each["params"]["update"]["sessionUpdate"] for each in messages if "method" in each]
    assert kinds == ["agent_message_chunk", "tool_call", "tool_call_update"]
    assert [each["id"] for each in messages if "result" in each] == [1, 2, 3]
    session = messages[1]["result"]["sessionId"]
    assert result == {
        "type": "result", "sessionId": session, "text": "Hello", "stopReason": "end_turn", "exitCode": 0,
        "usage": None, "cost": None, "changes": [],
    }  # fmt: skip
    assert done.stderr == ""


def test_json_tells_of_an_error_in_the_result(shell: CommandLine) -> None:
    done = shell.run("exec", "--json", "error -32603 out of tokens")
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["error"] == {"code": -32603, "message": "out of tokens"}
    assert done.returncode == result["exitCode"] == 1


def test_text_from_an_agent_does_not_command_the_terminal(shell: CommandLine) -> None:
    content = {"type": "text", "text": "a\u001b]0;evil\u0007b\r\n"}
    update = json.dumps({"sessionUpdate": "agent_message_chunk", "content": content})
    with shell.terminal("exec", f"update {update}") as term:
        assert term.end() == 0
        assert "\x1b]0" not in term.raw
        assert "a]0;evilb" in term.shown


def test_json_tells_what_the_turn_changed(shell: CommandLine) -> None:
    shell.configure(checkpoints={"enabled": True}, agents={"scripted": agent(serve_fs=True)})
    done = shell.run("exec", "--json", "--approve", "all", f"fswrite {shell.folder}/made.txt one")
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["changes"] == [{"path": "made.txt", "status": "added", "added": 1, "removed": 0}]
