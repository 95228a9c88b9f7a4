"""What an agent sends is data: no shape of it costs a person a question, or a turn its answer."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from support.clients.bridge_page import Page
from support.rpc_peer import is_request
from support.serve_process import ServeProcess

from .conftest import Serve

YES = {"outcome": {"outcome": "selected", "optionId": "yes"}}

ODD: tuple[Any, ...] = ("abc", 1.5, True, None, [], {}, [[]], {"a": [1]}, 2**70, "\r\n", "x" * 5000)
"""Values of every type, for members that should have another."""

MEMBERS = ("requestId", "_meta", "toolCall", "options", "id", "method", "jsonrpc")
"""Members of a permission request that somebody on the way may look at."""


def questions() -> list[dict[str, Any]]:
    plain = [{name: value} for name in MEMBERS for value in ODD]
    option = {"optionId": "yes", "name": "Yes", "kind": "allow_once"}
    nested: list[dict[str, Any]] = [
        *({"toolCall": {"toolCallId": value}} for value in ODD),
        *({"toolCall": {"toolCallId": "t", "kind": value, "status": value}} for value in ODD),
        *({"toolCall": {"toolCallId": "t", "content": [value, {"type": value}]}} for value in ODD),
        *({"toolCall": {"toolCallId": "t", "content": [{"terminalId": value}]}} for value in ODD),
        *({"toolCall": {"toolCallId": "t", "_meta": value}} for value in ODD),
        *({"options": [value, option]} for value in ODD),
        *({"options": [option, {"optionId": value, "name": value, "kind": value}]} for value in ODD),
        *({"_meta": {"dragoman": value}} for value in ODD),
        *({"_meta": {"dragoman": {"requestId": value, "seq": value, "own": True}}} for value in ODD),
    ]
    return plain + nested


async def test_a_member_of_another_type_does_not_cost_the_question_or_the_turn(
    serving: ServeProcess, workspace: Path
) -> None:
    """A REST caller, which is asked first, looks at the ids of withdrawn questions."""
    client, go = serving.http(), workspace / "go"
    place = (await client.post("/api/sessions", json={"cwd": str(workspace)})).headers["location"]
    prompt = {"prompt": f'say here\nwait-file {go}\npermission {{"requestId":"abc"}}\nsay done'}
    turn = asyncio.create_task(client.post(f"{place}/prompt", json=prompt))
    socket = await serving.socket()
    await socket.initialize()
    session = place.rpartition("/")[2]
    await socket.request("session/load", {"sessionId": session, "cwd": str(workspace), "mcpServers": []})
    await socket.text(session, "here")
    go.touch()
    socket.reply(await socket.next_message(is_request("session/request_permission")), YES)
    answer = (await turn).json()
    assert (answer["stopReason"], answer["text"].endswith("done")) == ("end_turn", True)
    assert "Traceback" not in serving.gateway.stderr


@pytest.mark.parametrize("journal", [True, False])
async def test_hostile_permission_params_are_asked_answered_and_forgotten(
    serve: Serve, workspace: Path, journal: bool
) -> None:
    """Beside a REST caller, an editor and a page, which all look at them in their own way."""
    serving = await serve(sessions={"journal": journal})
    socket = await serving.socket()
    await socket.initialize()
    socket.on("session/request_permission", YES)
    session = await socket.new_session(workspace)
    page = await Page.open(serving)
    await page.load(session)
    asked = questions()
    script = "\n".join(f"ask {json.dumps(each)}" for each in asked)
    body = {"prompt": f"{script}\nsay done"}
    answer = await serving.http().post(f"/api/sessions/{session}/prompt", json=body, timeout=60)
    assert answer.json()["stopReason"] == "end_turn", answer.text
    assert answer.json()["text"].endswith("done")
    assert "Traceback" not in serving.gateway.stderr
    assert (await page.next("turn_complete"))["stopReason"] == "end_turn"


KINDS = {
    "tool_call": ("toolCallId", "title", "kind", "status", "content", "rawInput", "toolCall", "result"),
    "tool_call_update": ("toolCallId", "status", "content", "locations", "arguments", "toolName"),
    "plan": ("entries", "steps", "plan"),
    "agent_message_chunk": ("content", "messageId"),
    "user_message": ("content",),
    "available_commands_update": ("availableCommands", "commands"),
    "config_option_update": ("configOptions",),
    "current_mode_update": ("currentModeId", "currentMode"),
    "session_info_update": ("title", "state", "stopReason"),
    "usage_update": ("used", "cost"),
    "notice": ("title", "severity"),
    "made_up": ("type", "seq", "sessionId"),
}
"""Kinds of updates, and members of theirs that somebody on the way looks at."""


def updates() -> list[dict[str, Any]]:
    found = [
        {"sessionUpdate": kind, "toolCallId": "t", member: value, "_meta": value}
        for kind, members in KINDS.items()
        for member in members
        for value in ODD
    ]
    lists: dict[str, list[str]] = {
        "tool_call_update": ["content"],
        "plan": ["entries"],
        "available_commands_update": ["availableCommands"],
        "config_option_update": ["configOptions"],
    }
    for kind, (member,) in lists.items():
        for value in ODD:
            item = dict.fromkeys(("id", "type", "path", "terminalId", "value", "options", "input"), value)
            found.append(
                {"sessionUpdate": kind, "toolCallId": "t", member: [value, item, {"category": "mode"}]}
            )
    dragoman = {"dragoman": {"state": [], "told": {}, "seq": "x", "clientMessageId": {}, "notice": 1}}
    return [*found, *({"sessionUpdate": kind, "_meta": dragoman} for kind in KINDS)]


def lines() -> list[str]:
    """Messages of an agent, each as it stands on its stdout; none of them is a question that waits for a person."""
    shaped = [
        {"method": "session/update", "params": {"sessionId": "{sid}", "update": each}} for each in updates()
    ]
    odd = [
        {"method": "session/update", "params": {"sessionId": "{sid}", "update": {}, "_meta": value}}
        for value in ODD
    ]
    others = [
        {"id": f"{method}-{number}", "method": method, "params": {**params, "sessionId": "{sid}"}}
        for method in (
            "fs/read_text_file",
            "fs/write_text_file",
            "terminal/create",
            "terminal/output",
            "_mine",
        )
        for number, value in enumerate(ODD)
        for params in ({"path": value, "terminalId": value, "command": value, "content": value},)
    ]
    loose = [
        {"id": f"loose-{number}", "method": method, "params": value}
        for method in ("elicitation/create", "_mine", "session/request_permission")
        for number, value in enumerate((*ODD, *({"sessionId": each, "requestId": each} for each in ODD)))
    ]
    told = [
        {"method": method, "params": value}
        for method in (
            "elicitation/complete",
            "_mine",
            "$/cancel_request",
            "_dragoman/replay",
            "session/update",
        )
        for value in (*ODD, *({"sessionId": "{sid}", "elicitationId": e, "requestId": e} for e in ODD))
    ]
    answers = [{"id": value, "result": value, "error": value} for value in ODD]
    numbers = [
        '"rawOutput":1e400',
        '"content":[{"type":"terminal","terminalId":"x","n":1e400}]',
        '"_meta":{"a":1e400}',
    ]
    raw = [
        '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"{sid}",'
        f'"update":{{"sessionUpdate":"tool_call_update","toolCallId":"t",{each}}},"_meta":{{"b":1e400}}}}}}'
        for each in numbers
    ]
    made: list[dict[str, Any]] = [*shaped, *odd, *others, *loose, *told, *answers]
    return [*(json.dumps({"jsonrpc": "2.0", **each}) for each in made), *raw]


@pytest.mark.parametrize("journal", [True, False])
async def test_hostile_messages_cost_nobody_an_event(serve: Serve, workspace: Path, journal: bool) -> None:
    serving = await serve(sessions={"journal": journal})
    numbered = await serving.socket()
    await numbered.initialize(
        clientCapabilities={"_meta": {"dragoman": {"seq": True}}, "elicitation": {"form": {}}}
    )
    session = await numbered.new_session(workspace)
    page = await Page.open(serving)
    await page.load(session)
    body = {"prompt": "\n".join((*(f"raw {line}" for line in lines()), "say done"))}
    answer = await serving.http().post(f"/api/sessions/{session}/prompt", json=body, timeout=60)
    assert answer.json()["stopReason"] == "end_turn", answer.text
    assert answer.json()["text"].endswith("done")
    await numbered.text(session, "done")
    await page.next("turn_complete")
    assert page.seqs(session) == list(range(1, page.seqs(session)[-1] + 1))
    assert "Traceback" not in serving.gateway.stderr
