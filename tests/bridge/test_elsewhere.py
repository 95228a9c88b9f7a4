"""Sessions that another process has, and sessions that nobody keeps."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from server.conftest import Serve
from support.clients.bridge_page import Page
from support.gateway_process import Start
from support.rpc_peer import PATIENCE, is_request

FLOOD = "flood 20000 60"
YES = {"outcome": "selected", "optionId": "yes"}


def text(content: str) -> dict[str, str]:
    return {"type": "text", "text": content}


async def test_a_session_of_an_editor_s_own_process_is_watched_by_its_journal(
    serve: Serve, dragoman: Start, workspace: Path
) -> None:
    editor = await dragoman("acp", "scripted", "--connect", "never")
    await editor.initialize()
    session = await editor.new_session(workspace)
    await editor.prompt(session, "say one\ntool t1")
    serving = await serve()
    other = await Page.open(serving)
    async with asyncio.timeout(PATIENCE):
        while (await other.load(session))["session"]["state"] != "idle":
            pass  # the directory may be a second behind
    page = await Page.open(serving)
    loaded = await page.load(session)
    assert (loaded["session"]["live"], loaded["session"]["state"]) == (True, "idle")
    assert page.types(session)[:2] == ["user_message", "message_chunk"]
    turn = editor.start_prompt(session, "say two\npermission\nsay three")
    asked = await page.next("permission_request")
    await editor.next_message(is_request("session/request_permission"))
    assert (await page.ask("permission_response", requestId=asked["requestId"], outcome=YES))["type"] == "ack"
    assert (await turn).stop_reason == "end_turn"
    resolved = await page.next("permission_resolved")
    assert resolved["requestId"] == asked["requestId"]
    ended = await page.socket.next_message(
        lambda m: m["type"] == "turn_complete" and m["seq"] > resolved["seq"]
    )
    assert (page.text(session)[-5:], ended["stopReason"]) == ("three", "end_turn")
    assert (await page.turn(session, "say from the page"))[-1]["stopReason"] == "end_turn"
    assert page.text(session).endswith("from the page")
    assert page.seqs(session) == list(range(1, len(page.seqs(session)) + 1))
    refused = await page.ask("rename_session", sessionId=session, title="x")
    assert refused["code"] == "session_held"


async def test_when_that_process_dies_the_page_sees_the_end_of_its_turn(
    serve: Serve, dragoman: Start, workspace: Path
) -> None:
    editor = await dragoman("acp", "scripted", "--connect", "never")
    await editor.initialize()
    session = await editor.new_session(workspace)
    editor.start_prompt(session, "say here\nsleep-until-cancel")
    page = await Page.open(await serve())
    await page.load(session)
    await page.next("message_chunk", content="here")
    await editor.kill()
    ended = await page.next("turn_complete")
    assert ended["error"]["code"] == "restart"
    assert (await page.turn(session, "say on"))[-1]["stopReason"] == "end_turn"
    assert page.seqs(session) == list(range(1, len(page.seqs(session)) + 1))


@pytest.mark.parametrize("moment", ["reading", "speaking"])
async def test_when_that_process_dies_no_event_comes_twice_or_out_of_order(
    serve: Serve, dragoman: Start, workspace: Path, moment: str
) -> None:
    editor = await dragoman("acp", "scripted", "--connect", "never")
    await editor.initialize()
    session = await editor.new_session(workspace)
    serving = await serve()
    pages = [await Page.open(serving) for _ in range(2)]
    if moment == "reading":  # the pages are still behind when they lose the process whose journal they read
        await editor.prompt(session, FLOOD)
    else:
        editor.start_request("session/prompt", {"sessionId": session, "prompt": [text(FLOOD)]})
    for page in pages:
        page.send("load_session", sessionId=session)
    for page in pages:
        await page.next("message_chunk")
    await editor.kill()
    await pages[0].next("turn_complete")
    assert (await pages[0].ask("send_message", sessionId=session, content="say on"))["type"] == "ack"
    for page in pages:
        await page.next("message_chunk", content="on")
        assert page.seqs(session) == list(range(1, len(page.seqs(session)) + 1))


async def test_a_page_that_loads_again_gets_what_it_asks_for_and_no_hole(
    serve: Serve, dragoman: Start, workspace: Path
) -> None:
    editor = await dragoman("acp", "scripted", "--connect", "never")
    await editor.initialize()
    session = await editor.new_session(workspace)
    await editor.prompt(session, "flood 5000 60")
    page = await Page.open(await serve())
    page.send("load_session", sessionId=session)
    await page.next("message_chunk")
    page.send("resume", sessionId=session, afterSeq=3)
    for _ in range(2):
        await page.next("session_loaded", sessionId=session)
    await editor.prompt(session, "say on")
    await page.next("message_chunk", content="on")
    again = [index for index, event in enumerate(page.received) if event["type"] == "session_loaded"][1]
    found = [event["seq"] for event in page.received[again:] if "seq" in event]
    assert found == list(range(4, len(found) + 4))


async def test_a_turn_of_that_process_is_cancelled_by_a_page_that_watches_and_by_one_that_does_not(
    serve: Serve, dragoman: Start, workspace: Path
) -> None:
    editor = await dragoman("acp", "scripted", "--connect", "never")
    await editor.initialize()
    session = await editor.new_session(workspace)
    page = await Page.open(await serve())
    for watched in (False, True):
        if watched:
            await page.load(session)
        turn = editor.start_prompt(session, f"sleep-until-cancel {watched}")
        await editor.text(session, str(watched))
        assert (await page.ask("cancel_turn", sessionId=session))["type"] == "ack"
        assert (await turn).stop_reason == "cancelled"


async def test_without_a_journal_numbers_come_from_memory_and_the_past_is_said_to_be_gone(
    serve: Serve, workspace: Path
) -> None:
    serving = await serve(sessions={"journal": False})
    page = await Page.open(serving)
    session = await page.new_session(workspace)
    events = await page.turn(session, "say one\npermission-nowait\nsay two")
    assert [event["type"] for event in events][:2] == ["user_message", "message_chunk"]
    assert page.seqs(session) == list(range(1, len(page.seqs(session)) + 1))
    other = await Page.open(serving)
    loaded = await other.load(session)
    last = loaded["session"]["lastSeq"]
    assert (loaded["afterSeq"], loaded["session"]["firstSeq"]) == (last, last + 1)
    assert (await other.next("error"))["code"] == "not_kept"
    assert (await other.ask("history", sessionId=session, beforeSeq=last))["code"] == "not_kept"
    await page.turn(session, "say three")
    assert (await other.next("message_chunk", content="three"))["seq"] > last
    other.send("list_sessions")
    assert len((await other.next("session_list"))["sessions"]) == 1
