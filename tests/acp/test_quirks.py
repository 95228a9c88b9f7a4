"""Agents that behave differently on the wire, and clients that do not notice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.answers import ALLOW, REJECT
from support.gateway import Dragoman

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
