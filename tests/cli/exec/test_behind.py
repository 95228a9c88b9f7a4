"""`dragoman exec -s ID` while a turn of another client runs in that session."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import pytest

from support.command_line import CommandLine
from support.gateway_process import Start, agent
from support.rpc_peer import is_request

NO = {"outcome": {"outcome": "selected", "optionId": "no"}}


@pytest.fixture
def shell(home: Path, workspace: Path) -> CommandLine:
    return CommandLine(home, workspace)


async def test_it_says_that_it_waits_and_prints_its_own_turn_alone(
    dragoman: Start, shell: CommandLine, tmp_path: Path
) -> None:
    client = await dragoman(agents={"scripted": agent()}, sessions={"queue": 5})
    await client.initialize()
    session, go = await client.new_session(shell.folder), tmp_path / "go"
    script = f"say one\npermission\nwait-file {go}\nsay foreign\npermission\ntool x"
    turn = client.start_prompt(session, script)
    first = await client.next_message(is_request("session/request_permission"))
    plain, as_json = (
        ("exec", "-s", session, "say mine"),
        ("exec", "--json", "-s", session, "say other\ntool y"),
    )
    with shell.start(*plain) as one, shell.start(*as_json) as two:
        for running in (one, two):
            assert running.stderr is not None
            told = await asyncio.to_thread(running.stderr.readline)
            assert told.startswith(
                f"waiting: a turn of another client runs in {session}; 1 question of it is open"
            )
            assert f"`dragoman cancel {session}` ends it" in told
        client.reply(first, NO)
        go.touch()
        second = await client.next_message(is_request("session/request_permission"))
        client.reply(second, {"outcome": {"outcome": "selected", "optionId": "yes"}})
        asked = str((await turn).texts)
        out, err = await asyncio.to_thread(one.communicate)
        lines = (await asyncio.to_thread(two.communicate))[0].splitlines()
    assert asked.count("no") == 1 and asked.count("yes") == 1, "not the script's to answer"
    assert (one.returncode, two.returncode, out) == (0, 0, "mine\n")
    assert "Tool x" not in err and "Tool y" not in err
    messages = [json.loads(line) for line in lines]
    kinds = [message["params"]["update"]["sessionUpdate"] for message in messages if "method" in message]
    assert kinds == ["agent_message_chunk", "tool_call", "tool_call_update"]
    assert "foreign" not in str(lines) and "mine" not in str(lines) and "request_permission" not in str(lines)
    assert messages[-2]["result"] == {"stopReason": "end_turn"}
    assert messages[-1]["type"] == "result" and messages[-1]["text"] == "other"


async def test_interrupted_it_takes_its_prompt_back_and_the_turn_goes_on(
    dragoman: Start, shell: CommandLine
) -> None:
    client = await dragoman(agents={"scripted": agent()}, sessions={"queue": 5})
    await client.initialize()
    session = await client.new_session(shell.folder)
    turn = client.start_prompt(session, "permission\nsay still here")
    question = await client.next_message(is_request("session/request_permission"))
    with shell.start("exec", "-s", session, "say mine") as running:
        assert running.stderr is not None
        await asyncio.to_thread(running.stderr.readline)
        running.send_signal(signal.SIGINT)
        assert await asyncio.to_thread(running.wait, 30) == 130
    client.reply(question, NO)
    ended = await turn
    assert (ended.stop_reason, ended.texts[-1]) == ("end_turn", "still here")
