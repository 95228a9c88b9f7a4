"""Agents that behave differently on the wire, and clients that do not notice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.answers import ALLOW, REJECT
from support.gateway import Dragoman, Start, agent
from support.rpc_peer import text_of
from support.waiting import runs

QUESTION = {
    "toolCall": {"toolCallId": "shell__1", "title": "make", "kind": "execute"},
    "options": [
        {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
        {"optionId": "no", "name": "No", "kind": "reject_once"},
    ],
}


def update(**members: Any) -> str:
    return "update " + json.dumps(members)


async def test_a_tool_call_exists_before_its_question(client: Dragoman, workspace: Path) -> None:
    client.on("session/request_permission", ALLOW)
    session = await client.new_session(workspace)
    done = update(sessionUpdate="tool_call_update", toolCallId="shell__1", status="completed")
    turn = await client.prompt(session, f"permission {json.dumps(QUESTION)}\n{done}")
    tools = [each for each in turn.updates if each["sessionUpdate"].startswith("tool_call")]
    assert [(each["sessionUpdate"], each["status"]) for each in tools] == [
        ("tool_call", "pending"),
        ("tool_call_update", "completed"),
    ]
    assert tools[0]["title"] == "make"
    methods = [message.get("method") for message in client.received]
    assert methods.index("session/update") < methods.index("session/request_permission")


async def test_a_tool_call_that_was_told_is_not_told_again(client: Dragoman, workspace: Path) -> None:
    client.on("session/request_permission", ALLOW)
    call = update(sessionUpdate="tool_call", toolCallId="shell__1", title="make", status="pending")
    turn = await client.prompt(
        await client.new_session(workspace), f"{call}\npermission {json.dumps(QUESTION)}"
    )
    assert [each["sessionUpdate"] for each in turn.updates].count("tool_call") == 1


async def test_no_tool_call_is_left_open_when_the_turn_ends(client: Dragoman, workspace: Path) -> None:
    client.on("session/request_permission", REJECT)
    turn = await client.prompt(await client.new_session(workspace), f"permission {json.dumps(QUESTION)}")
    last = [each for each in turn.updates if each["sessionUpdate"].startswith("tool_call")][-1]
    assert (last["toolCallId"], last["status"]) == ("shell__1", "failed")


async def test_a_mode_that_is_said_in_the_chat_becomes_a_mode_update(
    client: Dragoman, workspace: Path
) -> None:
    turn = await client.prompt(await client.new_session(workspace), "say [MODE_UPDATE] yolo\nsay hello")
    assert turn.texts == ["hello"]
    modes = [each["currentModeId"] for each in turn.updates if each["sessionUpdate"] == "current_mode_update"]
    assert modes == ["yolo"]


async def test_a_command_that_runs_on_after_cancel_ends_with_its_agent(
    dragoman: Start, workspace: Path
) -> None:
    gateway = await dragoman(agents={"scripted": agent()})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    call = update(sessionUpdate="tool_call", toolCallId="t", title="x", kind="execute", status="in_progress")
    running = gateway.start_prompt(session, f"{call}\norphan\nsleep-until-cancel")
    await gateway.text(session, "sleeping")
    (pid,) = (int(text_of(each).split()[1]) for each in gateway.of(session) if "orphan" in text_of(each))
    gateway.cancel(session)
    turn = await running
    assert turn.stop_reason == "cancelled"
    again = await gateway.prompt(session, "say back again")  # at once: it waits for the look at the command
    assert again.texts == ["back again"]
    assert not runs(pid)


async def test_an_agent_whose_commands_end_with_the_turn_stays(client: Dragoman, workspace: Path) -> None:
    session = await client.new_session(workspace)
    call = update(sessionUpdate="tool_call", toolCallId="t", title="x", kind="execute", status="in_progress")
    running = client.start_prompt(session, f"{call}\nsleep-until-cancel")
    await client.text(session, "sleeping")
    agents = [pid for pid, line in client.processes().items() if "scripted_agent" in line]
    client.cancel(session)
    await running
    await client.prompt(session, "say still here")
    assert [pid for pid, line in client.processes().items() if "scripted_agent" in line] == agents


async def test_a_failure_that_was_said_in_the_chat_is_the_errors_words(
    client: Dragoman, workspace: Path
) -> None:
    status = {"codex": {"threadStatus": {"type": "systemError"}}}
    failed = update(sessionUpdate="session_info_update", _meta=status)
    turn = await client.prompt(await client.new_session(workspace), f"{failed}\nsay The model said 400")
    assert turn.error is not None
    assert "The model said 400" in turn.error.message
