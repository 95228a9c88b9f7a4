"""A whole conversation, by the names of its events."""

from __future__ import annotations

from pathlib import Path

from support.bridge_peer import Page
from support.serving import Serving


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


async def test_a_page_that_comes_later_sees_the_same_events(
    page: Page, serving: Serving, workspace: Path
) -> None:
    session = await page.new_session(workspace)
    await page.turn(session, "say one\ntool t1\nsay two")
    await page.next("session_info")
    other = await Page.open(serving)
    loaded = await other.load(session)
    assert (loaded["afterSeq"], loaded["session"]["lastSeq"]) == (0, page.seqs(session)[-1])
    strip = [{**event, "timestamp": ""} for event in page.numbered(session)]
    assert [{**event, "timestamp": ""} for event in other.numbered(session)] == strip
