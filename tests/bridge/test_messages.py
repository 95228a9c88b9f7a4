"""Messages: queued while a turn runs, and never sent twice."""

from __future__ import annotations

import shlex
from pathlib import Path

from server.conftest import Serve
from support.clients.bridge_page import Event, Page
from support.gateway_process import agent
from support.serve_process import ServeProcess


def said(page: Page, session: str) -> list[str]:
    return [e["content"]["text"] for e in page.numbered(session) if e["type"] == "user_message"]


async def test_a_second_message_waits_and_is_sent_when_the_turn_ends(
    page: Page, serving: ServeProcess, workspace: Path
) -> None:
    session = await page.new_session(workspace)
    other = await Page.open(serving)
    await other.load(session)
    go = workspace / "go"
    page.send("send_message", sessionId=session, content=f"say here\nwait-file {go}", clientMessageId="a")
    await page.next("message_chunk", content="here")
    page.send("send_message", sessionId=session, content="say second", clientMessageId="b")
    page.send("send_message", sessionId=session, content="say third", clientMessageId="c")
    for tab in (page, other):
        await tab.next("queue_changed")
        queue = (await tab.next("queue_changed"))["queue"]
        assert [message["clientMessageId"] for message in queue] == ["b", "c"]
    assert (await page.next("ack", clientMessageId="c"))["sessionId"] == session
    other.send("edit_queued", sessionId=session, queuedId="b", content="say better")
    await page.next("queue_changed")
    other.send("drop_queued", sessionId=session, queuedId="c")
    assert [m["clientMessageId"] for m in (await page.next("queue_changed"))["queue"]] == ["b"]
    go.touch()
    await page.next("message_chunk", content="better")
    await page.next("turn_complete")
    await page.next("turn_complete")
    assert said(page, session)[1:] == ["say better"]
    (sent,) = [e for e in page.numbered(session) if e.get("clientMessageId") == "b"]
    assert sent["type"] == "user_message"
    assert page.seqs(session) == list(range(1, len(page.seqs(session)) + 1))


async def test_a_queue_is_there_after_a_reload_and_after_a_restart(serve: Serve, workspace: Path) -> None:
    first = await serve()
    page = await Page.open(first)
    session = await page.new_session(workspace)
    page.send("send_message", sessionId=session, content="say here\nsleep-until-cancel")
    await page.next("message_chunk", content="here")
    assert (await page.ask("send_message", sessionId=session, content="say later", clientMessageId="q"))[
        "type"
    ] == "ack"
    tab = await Page.open(first)
    assert (await tab.load(session))["session"]["queue"][0]["clientMessageId"] == "q"
    await first.gateway.kill()
    again = await Page.open(await serve())
    queue = (await again.load(session))["session"]["queue"]
    assert queue == [{"clientMessageId": "q", "content": [{"type": "text", "text": "say later"}]}]
    assert (await again.ask("send_message", sessionId=session, content="say now"))["type"] == "ack"
    await again.next("message_chunk", content="later")
    await again.next("message_chunk", content="now")


async def test_after_a_turn_that_failed_the_queue_waits_for_people(page: Page, workspace: Path) -> None:
    session = await page.new_session(workspace)
    go = workspace / "go"
    page.send("send_message", sessionId=session, content=f"say here\nwait-file {go}\nerror -32603 broken")
    await page.next("message_chunk", content="here")
    await page.ask("send_message", sessionId=session, content="say later", clientMessageId="q")
    go.touch()
    assert (await page.next("turn_complete"))["error"]["message"]
    assert (await page.ask("drop_queued", sessionId=session, queuedId="q"))["type"] == "ack"
    assert (await page.turn(session, "say fresh"))[-1]["stopReason"] == "end_turn"
    assert "later" not in page.text(session)


async def test_a_queue_has_an_end(page: Page, workspace: Path) -> None:
    session = await page.new_session(workspace)
    page.send("send_message", sessionId=session, content="say here\nsleep-until-cancel")
    await page.next("message_chunk", content="here")
    for number in range(20):
        page.send("send_message", sessionId=session, content=f"say {number}")
    refused = await page.ask("send_message", sessionId=session, content="say too much")
    assert (refused["type"], refused["code"]) == ("error", "queue_full")


async def test_a_message_that_is_sent_again_is_not_done_again(
    page: Page, serving: ServeProcess, workspace: Path
) -> None:
    session = await page.new_session(workspace)
    first = await page.ask("send_message", sessionId=session, content="say once", clientMessageId="x")
    await page.next("turn_complete")
    other = await Page.open(serving)
    await other.load(session)
    again = await other.ask("send_message", sessionId=session, content="say once", clientMessageId="x")
    assert "duplicate" not in first
    assert again == {"type": "ack", "clientMessageId": "x", "sessionId": session, "duplicate": True}
    await page.turn(session, "say end")
    assert said(page, session) == ["say once", "say end"]


async def test_a_message_is_known_again_after_a_restart(serve: Serve, workspace: Path) -> None:
    first = await serve()
    page = await Page.open(first)
    session = await page.new_session(workspace)
    page.send(
        "send_message", sessionId=session, content="flood 500 50\nsleep-until-cancel", clientMessageId="x"
    )
    await page.next("ack", clientMessageId="x")
    await page.next("message_chunk", content="sleeping")
    await first.gateway.kill()
    again = await Page.open(await serve())
    ack = await again.ask("send_message", sessionId=session, content="flood", clientMessageId="x")
    assert ack.get("duplicate") is True, ack
    await again.load(session)
    assert len(said(again, session)) == 1


async def test_a_new_session_that_is_asked_for_again_is_the_same_one(
    page: Page, serving: ServeProcess, workspace: Path
) -> None:
    page.send("new_session", cwd=str(workspace), clientMessageId="n")
    session = (await page.next("session_created", clientMessageId="n"))["sessionId"]
    other = await Page.open(serving)
    ack = await other.ask("new_session", cwd=str(workspace), clientMessageId="n")
    assert (ack["sessionId"], ack["duplicate"]) == (session, True)


async def test_a_message_to_a_session_that_is_not_open_here_is_sent(
    page: Page, serving: ServeProcess, workspace: Path
) -> None:
    session = await page.new_session(workspace)
    other = await Page.open(serving)
    assert (await other.ask("send_message", sessionId=session, content="say hi"))["type"] == "ack"
    await page.next("message_chunk", content="hi")


async def test_a_page_that_sends_without_loading_sees_what_comes_of_it(
    page: Page, serving: ServeProcess, workspace: Path
) -> None:
    session = await page.new_session(workspace)
    await page.turn(session, "say before")
    other = await Page.open(serving)
    other.send("send_message", sessionId=session, content="say hi")
    await other.next("message_chunk", content="hi")
    assert (await other.next("turn_complete"))["stopReason"] == "end_turn"
    assert (said(other, session), other.text(session)) == (["say hi"], "hi")
    told = [event["type"] for event in other.received if event["type"] != "session_changed"]
    assert told[:3] == ["hello", "session_loaded", "caught_up"]
    await other.turn(session, "say more")
    assert other.text(session) == "himore"
    assert [event["type"] for event in other.received].count("session_loaded") == 1


async def test_a_page_that_sends_without_loading_wakes_a_session_that_sleeps(
    serve: Serve, workspace: Path
) -> None:
    first = await serve()
    page = await Page.open(first)
    session = await page.new_session(workspace)
    await page.turn(session, "say before")
    await first.gateway.kill()
    other = await Page.open(await serve())
    other.send("send_message", sessionId=session, content="permission\nsay hi")
    asked = await other.next("permission_request")
    other.send("permission_response", requestId=asked["requestId"], outcome={"outcome": "cancelled"})
    await other.next("message_chunk", content="hi")
    assert "before" not in other.text(session)
    unknown = await other.ask("send_message", sessionId="dgm_none", content="say hi")
    assert unknown["code"] == "unknown_session"


async def test_content_that_the_agent_does_not_take_is_refused_with_a_sentence(
    page: Page, workspace: Path
) -> None:
    session = await page.new_session(workspace)
    image = [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]
    refused = await page.ask("send_message", sessionId=session, content=image)
    assert (refused["code"], "image" in refused["message"]) == ("content_type", True)
    assert refused["hint"]


async def test_a_turn_ends_when_it_is_cancelled(page: Page, workspace: Path) -> None:
    session = await page.new_session(workspace)
    page.send("send_message", sessionId=session, content="say here\nsleep-until-cancel")
    await page.next("message_chunk", content="here")
    page.send("cancel_turn", sessionId=session)
    assert (await page.next("turn_complete"))["stopReason"] == "cancelled"


async def test_a_turn_goes_on_when_its_page_is_closed(
    page: Page, serving: ServeProcess, workspace: Path
) -> None:
    session = await page.new_session(workspace)
    go = workspace / "go"
    page.send("send_message", sessionId=session, content=f"say here\nwait-file {go}\nsay done")
    await page.next("message_chunk", content="here")
    await page.ask("send_message", sessionId=session, content="say queued")
    await page.close()
    go.touch()
    other = await Page.open(serving)
    await other.load(session)
    await other.next("message_chunk", content="queued")


def waiting(event: Event) -> list[str]:
    return [message["clientMessageId"] for message in event["queue"]]


async def test_a_queued_message_that_the_agent_does_not_take_waits_on(page: Page, workspace: Path) -> None:
    session = await page.new_session(workspace)
    go = workspace / "go"
    page.send("send_message", sessionId=session, content=f"say here\nwait-file {go}")
    await page.next("message_chunk", content="here")
    image = [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]
    await page.ask("send_message", sessionId=session, content=image, clientMessageId="i")
    await page.ask("send_message", sessionId=session, content="say later", clientMessageId="l")
    go.touch()
    assert "image" in (await page.next("notice"))["title"]
    queues = [waiting(event) for event in page.numbered(session) if event["type"] == "queue_changed"]
    assert queues == [["i"], ["i", "l"]]
    again = await page.ask("send_message", sessionId=session, content=image, clientMessageId="i")
    assert again["duplicate"] is True
    await page.ask("edit_queued", sessionId=session, queuedId="i", content="say instead")
    await page.ask("send_message", sessionId=session, content="say last")
    for text in ("instead", "later", "last"):
        await page.next("message_chunk", content=text)


async def test_a_message_that_is_too_long_for_any_agent_does_not_wait(serve: Serve, workspace: Path) -> None:
    page = await Page.open(await serve(limits={"max_prompt_bytes": 200}))
    session = await page.new_session(workspace)
    go = workspace / "go"
    page.send("send_message", sessionId=session, content=f"say here\nwait-file {go}")
    await page.next("message_chunk", content="here")
    refused = await page.ask("send_message", sessionId=session, content="é" * 101, clientMessageId="q")
    assert (refused["type"], refused["code"]) == ("error", "prompt_too_large")
    wrong = await page.ask("send_message", sessionId=session, content=[{"type": 7}])
    assert (wrong["type"], wrong["code"]) == ("error", "content_type")
    again = await page.ask("send_message", sessionId=session, content="say " + "é" * 98, clientMessageId="q")
    assert again["type"] == "ack" and "duplicate" not in again
    refused = await page.ask("edit_queued", sessionId=session, queuedId="q", content="é" * 101)
    assert (refused["type"], refused["code"]) == ("error", "prompt_too_large")
    go.touch()
    await page.next("message_chunk", content="é" * 98)


async def test_a_queue_whose_agent_does_not_come_back_waits_on(serve: Serve, workspace: Path) -> None:
    command = agent()["command"]
    program, hidden = workspace / "agent", workspace / "hidden"
    program.write_text(f"#!/bin/sh\nexec {shlex.join(command)}\n")
    program.chmod(0o755)
    page = await Page.open(await serve(agents={"scripted": {"kind": "acp", "command": [str(program)]}}))
    session = await page.new_session(workspace)
    go = workspace / "go"
    page.send("send_message", sessionId=session, content=f"say here\nwait-file {go}\ncrash")
    await page.next("message_chunk", content="here")
    await page.ask("send_message", sessionId=session, content="say later", clientMessageId="l")
    program.rename(hidden)
    go.touch()
    await page.next("turn_complete")
    await page.ask("send_message", sessionId=session, content="say now", clientMessageId="n")
    assert "still waits" in (await page.next("notice"))["title"]
    assert [waiting(e) for e in page.numbered(session) if e["type"] == "queue_changed"][-1] == ["l", "n"]
    hidden.rename(program)
    await page.ask("send_message", sessionId=session, content="say last")
    for text in ("later", "now", "last"):
        await page.next("message_chunk", content=text)


async def test_a_message_that_is_stopped_while_its_agent_comes_back_is_refused(
    serve: Serve, workspace: Path
) -> None:
    page = await Page.open(await serve(agents={"scripted": agent("--init-delay", "1")}))
    session = await page.new_session(workspace)
    await page.turn(session, "crash")
    page.send("send_message", sessionId=session, content="say never", clientMessageId="x")
    await page.next("session_changed")
    page.send("cancel_turn", sessionId=session)
    refused = await page.next("error", clientMessageId="x")
    assert refused["code"] == "cancelled"
    assert (await page.ask("send_message", sessionId=session, content="say now", clientMessageId="x"))[
        "type"
    ] == "ack"
    await page.next("message_chunk", content="now")
