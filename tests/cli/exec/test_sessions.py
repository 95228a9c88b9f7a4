"""Which session and agent `dragoman exec` works with, and where its prompt comes from."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from support.agents.agent_log import AgentLog
from support.command_line import CommandLine
from support.gateway_process import Start, agent
from support.rpc_peer import is_request
from support.store.failing_store import WRITES, Faults


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_the_prompt_comes_from_stdin(shell: CommandLine, arguments: list[str]) -> None:
    assert shell.run("exec", *arguments, stdin="say grüße\n").stdout == "grüße\n"


def test_the_prompt_comes_from_a_file(shell: CommandLine) -> None:
    (shell.folder / "prompt.md").write_text("say from a file")
    assert shell.run("exec", "--file", "prompt.md").stdout == "from a file\n"


def test_the_agent_works_in_the_folder_that_is_given(shell: CommandLine) -> None:
    (shell.folder / "inner").mkdir()
    done = shell.run("exec", "--cwd", "inner", "cwd")
    assert done.stdout == f'cwd "{shell.folder / "inner"}"\n'


def test_a_session_goes_on_by_the_beginning_of_its_id(shell: CommandLine) -> None:
    session = shell.session("say one")
    done = shell.run("exec", "-s", session[:12], "say two")
    assert done.stdout == "two\n", "what was said before is not said again"
    assert done.stderr.splitlines()[-1] == f"session {session}"
    (only,) = json.loads(shell.run("sessions", "list", "--json").stdout)
    assert only["id"] == session


def test_the_session_keeps_its_folder_and_its_agent(shell: CommandLine) -> None:
    shell.configure(agents={"other": agent("--session-ids", "o")})
    session = shell.run("exec", "-a", "other", "hi").stderr.split()[-1]
    (shell.folder / "else").mkdir()
    done = shell.run("exec", "-s", session, "cwd\nenv NOTHING")
    assert str(shell.folder) in done.stdout
    wrong = shell.run("exec", "-s", session, "-a", "scripted", "hi")
    assert wrong.returncode == 2
    assert "belongs to the agent other" in wrong.stderr


async def test_a_session_in_an_editor_gets_the_prompt_of_a_script(
    shell: CommandLine, dragoman: Start
) -> None:
    editor = await dragoman("acp", "scripted")
    await editor.initialize()
    session = await editor.new_session(shell.folder)
    done = await asyncio.to_thread(shell.run, "exec", "-s", session, "say from a script")
    assert (done.returncode, done.stdout) == (0, "from a script\n")
    await editor.text(session, "from a script")
    assert (await editor.prompt(session, "say still here")).texts == ["still here"]


async def test_a_session_in_the_middle_of_a_turn_is_left_alone(shell: CommandLine, dragoman: Start) -> None:
    editor = await dragoman("acp", "scripted")
    await editor.initialize()
    session = await editor.new_session(shell.folder)
    turn = editor.start_prompt(session, "permission")
    question = await editor.next_message(is_request("session/request_permission"))
    done = await asyncio.to_thread(shell.run, "exec", "--approve", "all", "-s", session, "hi")
    assert done.returncode == 1
    assert "A prompt is already in flight in this session" in done.stderr
    editor.reply(question, {"outcome": {"outcome": "selected", "optionId": "no"}})
    assert (await turn).report("permission")["result"]["outcome"]["optionId"] == "no", (
        "not the script's to answer"
    )


@pytest.mark.parametrize("output", [[], ["--quiet"], ["--json"]], ids=["plain", "quiet", "json"])
def test_a_session_that_can_only_be_read_is_said_not_to_be_saved(
    shell: CommandLine, faults: Faults, output: list[str]
) -> None:
    session = shell.session("say one")
    faults.fail(*WRITES)
    done = subprocess.run(
        faults.command("exec", *output, "-s", session, "say two"),
        env={**shell.env, **faults.settings["env"]},
        cwd=shell.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        text=True,
        check=False,
    )
    words = "This conversation is not being saved: No space is left for the test."
    assert done.returncode == 0, done.stderr
    if output == ["--json"]:
        messages = [json.loads(line) for line in done.stdout.splitlines()]
        told = [m["params"]["update"] for m in messages if "notice" in str(m.get("params"))]
        assert told == [{"sessionUpdate": "notice", "severity": "error", "title": words}]
    else:
        assert done.stdout == "two\n"
        assert done.stderr.splitlines().count(f"! {words}") == 1


def test_the_last_session_of_the_folder_is_continued(shell: CommandLine, home: Path) -> None:
    nothing = shell.run("exec", "--continue", "hello")
    assert (nothing.returncode, "to continue" in nothing.stderr) == (2, True)
    shell.session("first")
    second = shell.session("second")
    again = shell.run("exec", "-c", "once more")
    assert again.stderr.strip().splitlines()[-1] == f"session {second}"
    assert shell.run("exec", "-c", "-s", second, "x").returncode == 2


def test_model_mode_and_other_options_are_set_before_the_prompt(shell: CommandLine, tmp_path: Path) -> None:
    heard = AgentLog(tmp_path / "heard.jsonl")
    shell.configure("--config-options", "--modes", *heard.flags)
    done = shell.run("exec", "--model", "large", "--mode", "code", "--name", "Big one", "hello")
    assert done.returncode == 0, done.stderr
    asked = [method for method in heard.methods if method.startswith("session/") and method != "session/new"]
    assert asked[:3] == ["session/set_config_option", "session/set_mode", "session/prompt"]
    assert "Big one" in shell.run("sessions", "list").stdout
    refused = shell.run("exec", "--option", "model=huge", "hello")
    assert (refused.returncode, "it has: small, large" in refused.stderr) == (2, True)
    assert shell.run("exec", "--option", "model", "hello").returncode == 2


def test_without_serve_a_prompt_is_not_handed_over(shell: CommandLine) -> None:
    done = shell.run("exec", "--no-wait", "hello")
    assert (done.returncode, "needs a running `dragoman serve`" in done.stderr) == (2, True)
    session = shell.session()
    told = shell.run("prompt", session, "hello").stderr
    assert f"`dragoman exec -s {session}`" in told
    assert (told.count("dragoman serve"), told.count("reached")) == (1, 0), told


def test_a_prompt_is_handed_to_serve(shell: CommandLine) -> None:
    with shell.start("serve", "--port", "0") as serving:
        assert serving.stdout is not None
        serving.stdout.readline()
        done = shell.run("exec", "--no-wait", "--name", "Later", "sleep-until-cancel")
        assert done.returncode == 0, done.stderr
        session = done.stdout.strip()
        (row,) = json.loads(shell.run("ps", "--json").stdout)
        assert (row["id"], row["state"], row["title"]) == (session, "working", "Later")
        for again in (["exec", "--no-wait", "-s", session, "hello"], ["prompt", "--now", session, "hello"]):
            refused = shell.run(*again)
            assert (refused.returncode, refused.stdout) == (1, "")
        assert shell.run("cancel", session).returncode == 0
        assert shell.run("prompt", session, "say thanks").stdout == f"{session}\n"
        assert shell.run("prompt", session, " ").returncode == 2


def test_what_is_piped_goes_below_the_prompt(shell: CommandLine) -> None:
    assert shell.run("exec", "say one ", "-", stdin="say two\n").stdout == "one two\n"
