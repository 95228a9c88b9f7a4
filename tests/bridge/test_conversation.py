"""A whole conversation, by the names of its events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from server.conftest import Serve
from support.clients.bridge_page import Page
from support.gateway_process import agent
from support.serve_process import ServeProcess


async def test_a_conversation_with_a_tool_and_a_question(page: Page, workspace: Path) -> None:
    hello = await page.next("hello")
    assert hello["bridge"] == 1
    assert hello["defaultAgent"] == "scripted"
    session = await page.new_session(workspace)
    page.send("send_message", sessionId=session, content="say hi\nthink hm\ntool t1\npermission\nsay bye")
    asked = await page.next("permission_request")
    page.send(
        "permission_response",
        requestId=asked["requestId"],
        outcome={"outcome": "selected", "optionId": "yes"},
    )
    done = await page.next("turn_complete")
    assert done["stopReason"] == "end_turn"
    await page.next("session_info", stopReason="end_turn")
    assert page.types(session) == [
        "user_message",
        "message_chunk",
        "thought_chunk",
        "tool_call_started",
        "tool_call_completed",
        "tool_call_started",
        "permission_request",
        "permission_resolved",
        "message_chunk",
        "message_chunk",
        "tool_call_completed",
        "turn_complete",
        "session_info",
    ]
    assert page.seqs(session) == list(range(1, 14))


async def test_a_terminal_that_the_gateway_runs_is_told_with_its_end(serve: Serve, workspace: Path) -> None:
    page = await Page.open(await serve(agents={"scripted": agent(serve_terminal=True)}))
    session = await page.new_session(workspace)
    events = await page.turn(session, "terminal echo hello")
    begun, ended = [event for event in events if event["type"] == "terminal_output"]
    assert (begun["terminalId"], begun["output"]) == (ended["terminalId"], "")
    assert (ended["output"], ended["exitStatus"]["exitCode"]) == ("hello\n", 0)


async def test_a_command_of_the_agent_s_own_is_a_terminal(page: Page, workspace: Path) -> None:
    session = await page.new_session(workspace)
    call = {"toolCallId": "t", "content": [{"type": "terminal", "terminalId": "t"}]}
    begun = {"sessionUpdate": "tool_call", **call, "title": "ls", "kind": "execute", "status": "in_progress"}
    printed = {"sessionUpdate": "tool_call_update", **call, "_meta": {"terminal_output": {"data": "a"}}}
    ended: dict[str, Any] = {"sessionUpdate": "tool_call_update", **call, "status": "completed"}
    ended["_meta"] = {"terminal_exit": {"exit_code": 0, "signal": None}}
    lines = [f"update {json.dumps(each)}" for each in (begun, printed, ended)]
    events = await page.turn(session, "\n".join(lines))
    assert [event["type"] for event in events][1:-1] == [
        "tool_call_started",
        "terminal_output",
        "tool_call_completed",
    ]
    assert (events[2]["terminalId"], events[2]["output"]) == ("t", "a")
    assert events[3]["terminal"]["exitStatus"]["exitCode"] == 0


async def test_a_page_that_comes_later_sees_the_same_events(
    page: Page, serving: ServeProcess, workspace: Path
) -> None:
    session = await page.new_session(workspace)
    await page.turn(session, "say one\ntool t1\nsay two")
    await page.next("session_info")
    other = await Page.open(serving)
    loaded = await other.load(session)
    assert (loaded["afterSeq"], loaded["session"]["lastSeq"]) == (0, page.seqs(session)[-1])
    strip = [{**event, "timestamp": ""} for event in page.numbered(session)]
    assert [{**event, "timestamp": ""} for event in other.numbered(session)] == strip
