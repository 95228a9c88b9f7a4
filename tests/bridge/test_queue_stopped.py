"""Stop stops: what waits for the end of a stopped turn is held and offered, and not sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from server.conftest import Serve
from support.clients.bridge_page import Event, Page
from support.serve_process import ServeProcess
from support.session_client import resume

STOPPED = "The turn was stopped before this message was sent."
WAITING = ("a", "b", "c")
Stop = Callable[[ServeProcess, Page, str, Path], Awaitable[None]]


def said(page: Page, session: str) -> list[str]:
    return [e["content"]["text"] for e in page.numbered(session) if e["type"] == "user_message"]


def held(queue: list[Event]) -> list[str]:
    return [message["clientMessageId"] for message in queue if message.get("stopped") is True]


def last_queue(page: Page, session: str) -> list[Event]:
    found: list[Event] = [e for e in page.numbered(session) if e["type"] == "queue_changed"][-1]["queue"]
    return found


async def three_waiting(page: Page, workspace: Path, running: str = "sleep-until-cancel") -> str:
    session = await page.new_session(workspace)
    page.send("send_message", sessionId=session, content=f"say here\n{running}")
    await page.next("message_chunk", content="here")
    for id in WAITING:
        await page.ask("send_message", sessionId=session, content=f"say {id}", clientMessageId=id)
    return session


async def by_command(serving: ServeProcess, page: Page, session: str, workspace: Path) -> None:
    assert (await page.ask("cancel_turn", sessionId=session))["type"] == "ack"


async def by_rest(serving: ServeProcess, page: Page, session: str, workspace: Path) -> None:
    assert (await serving.http().post(f"/api/sessions/{session}/cancel")).status_code == 202


async def by_an_acp_client(serving: ServeProcess, page: Page, session: str, workspace: Path) -> None:
    editor = await serving.socket()
    await editor.initialize()
    await resume(editor, session, workspace)
    editor.notify("session/cancel", {"sessionId": session})


@pytest.mark.parametrize("stop", [by_command, by_rest, by_an_acp_client])
async def test_after_a_stop_nothing_that_waited_is_sent(
    page: Page, serving: ServeProcess, workspace: Path, stop: Stop
) -> None:
    session = await three_waiting(page, workspace)
    await stop(serving, page, session, workspace)
    assert (await page.next("turn_complete"))["stopReason"] == "cancelled"
    queue = last_queue(page, session)
    assert held(queue) == list(WAITING)
    assert {message["held"] for message in queue} == {STOPPED}
    turn = await page.turn(session, "say fresh")
    assert [e["content"] for e in turn if e["type"] == "message_chunk"] == ["fresh"]
    assert said(page, session)[1:] == ["say fresh"]
    assert held(last_queue(page, session)) == list(WAITING)


async def test_a_stopped_queue_is_held_before_the_turn_has_ended(page: Page, workspace: Path) -> None:
    session = await three_waiting(page, workspace)
    page.send("cancel_turn", sessionId=session)
    await page.next("turn_complete")
    types = page.types(session)
    assert types.index("turn_complete") > max(i for i, type in enumerate(types) if type == "queue_changed")


async def test_a_stopped_queue_is_held_after_kill_9(serve: Serve, workspace: Path) -> None:
    first = await serve()
    page = await Page.open(first)
    session = await three_waiting(page, workspace, "ignore-cancel")
    await page.ask("cancel_turn", sessionId=session)
    await page.socket.next_message(lambda m: m["type"] == "queue_changed" and held(m["queue"]) != [])
    await first.gateway.kill()
    again = await Page.open(await serve())
    assert held((await again.load(session))["session"]["queue"]) == list(WAITING)
    await again.turn(session, "say fresh")
    assert said(again, session)[1:] == ["say fresh"]
    await again.ask("send_queued", sessionId=session, queuedId="b")
    await again.next("message_chunk", content="b")
    assert held(last_queue(again, session)) == ["a", "c"]


async def test_held_messages_are_sent_one_by_one_or_all_together(page: Page, workspace: Path) -> None:
    session = await three_waiting(page, workspace)
    await page.ask("cancel_turn", sessionId=session)
    await page.next("turn_complete")
    assert (await page.ask("send_queued", sessionId=session, queuedId="c"))["type"] == "ack"
    await page.next("message_chunk", content="c")
    await page.next("turn_complete")
    assert held(last_queue(page, session)) == ["a", "b"]
    assert (await page.ask("send_queued", sessionId=session))["type"] == "ack"
    await page.next("message_chunk", content="a")
    await page.next("message_chunk", content="b")
    assert said(page, session)[1:] == ["say c", "say a", "say b"]
    gone = await page.ask("send_queued", sessionId=session, queuedId="c")
    assert gone["code"] == "not_queued"


async def test_a_held_message_that_is_changed_stays_held_until_it_is_sent(
    page: Page, workspace: Path
) -> None:
    session = await three_waiting(page, workspace)
    await page.ask("cancel_turn", sessionId=session)
    await page.next("turn_complete")
    await page.ask("edit_queued", sessionId=session, queuedId="b", content="say better")
    assert held(last_queue(page, session)) == list(WAITING)
    await page.ask("drop_queued", sessionId=session, queuedId="a")
    await page.ask("drop_queued", sessionId=session, queuedId="c")
    await page.ask("send_queued", sessionId=session, queuedId="b")
    await page.next("message_chunk", content="better")
    assert said(page, session)[1:] == ["say better"]
    assert last_queue(page, session) == []


async def test_a_message_that_is_written_after_the_stop_is_sent_when_the_turn_has_ended(
    page: Page, workspace: Path
) -> None:
    session = await three_waiting(page, workspace, f"wait-file {workspace / 'go'}")
    await page.ask("cancel_turn", sessionId=session)
    await page.ask("send_message", sessionId=session, content="say instead", clientMessageId="d")
    (workspace / "go").touch()
    await page.next("message_chunk", content="instead")
    assert said(page, session)[1:] == ["say instead"]
    assert held(last_queue(page, session)) == list(WAITING)


async def test_a_second_stop_holds_what_was_written_after_the_first(page: Page, workspace: Path) -> None:
    session = await three_waiting(page, workspace, f"wait-file {workspace / 'go'}")
    await page.ask("cancel_turn", sessionId=session)
    await page.ask("send_message", sessionId=session, content="say instead", clientMessageId="d")
    await page.ask("cancel_turn", sessionId=session)
    (workspace / "go").touch()
    await page.next("turn_complete")
    assert held(last_queue(page, session)) == [*WAITING, "d"]


async def test_a_released_message_waits_for_the_turn_that_runs(page: Page, workspace: Path) -> None:
    session = await three_waiting(page, workspace)
    await page.ask("cancel_turn", sessionId=session)
    await page.next("turn_complete")
    go = workspace / "go"
    page.send("send_message", sessionId=session, content=f"say fresh\nwait-file {go}")
    await page.next("message_chunk", content="fresh")
    await page.ask("send_queued", sessionId=session, queuedId="b")
    assert held(last_queue(page, session)) == ["a", "c"]
    go.touch()
    await page.next("message_chunk", content="b")
    assert held(last_queue(page, session)) == ["a", "c"]


async def test_a_turn_that_the_agent_itself_calls_cancelled_holds_the_queue_too(
    page: Page, workspace: Path
) -> None:
    go = workspace / "go"
    session = await three_waiting(page, workspace, f"wait-file {go}\nstop cancelled")
    go.touch()
    assert (await page.next("turn_complete"))["stopReason"] == "cancelled"
    await page.ask("ping")
    assert held((await page.load(session))["session"]["queue"]) == list(WAITING)


async def test_after_a_turn_that_failed_the_queue_can_be_sent_without_another_message(
    page: Page, workspace: Path
) -> None:
    go = workspace / "go"
    session = await three_waiting(page, workspace, f"wait-file {go}\nerror -32603 broken")
    go.touch()
    assert (await page.next("turn_complete"))["error"]
    await page.ask("send_queued", sessionId=session)
    for id in WAITING:
        await page.next("message_chunk", content=id)
