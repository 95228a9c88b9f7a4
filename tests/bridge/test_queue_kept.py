"""A queue over the death of its process: no message that was acknowledged is lost, and none is sent twice."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path

import pytest

from dragoman.bridge.message import Message
from dragoman.bridge.restore import restore_state
from dragoman.gateway.delivery import events
from dragoman.gateway.ports.store import SessionRecord
from dragoman.gateway.rewriting.updates import update_line
from dragoman.store import FileStore
from dragoman.wire import timestamps
from server.conftest import Serve
from support.clients.bridge_page import Page
from support.gateway_process import Table, agent
from support.waiting import until


def said(page: Page, session: str) -> list[str]:
    return [e["content"]["text"] for e in page.numbered(session) if e["type"] == "user_message"]


def waiting(queue: list[Table]) -> list[str]:
    return [message["clientMessageId"] for message in queue]


@pytest.fixture
def slow(tmp_path: Path) -> Table:
    """An agent that starts once the file `ready` exists, and says that it is asked to with `asked`."""
    program = tmp_path / "agent"
    ready, asked = tmp_path / "ready", tmp_path / "asked"
    wait = f"while [ ! -e {ready} ]; do touch {asked}; sleep 0.02; done"
    program.write_text(f"#!/bin/sh\n{wait}\nexec {shlex.join(agent()['command'])}\n")
    program.chmod(0o755)
    ready.touch()
    return {"scripted": {"kind": "acp", "command": [str(program)]}}


async def test_a_queued_message_outlives_kill_9_while_its_agent_is_brought_back(
    serve: Serve, workspace: Path, tmp_path: Path, slow: Table
) -> None:
    first = await serve(agents=slow)
    page = await Page.open(first)
    session = await page.new_session(workspace)
    go = workspace / "go"
    page.send("send_message", sessionId=session, content=f"say here\nwait-file {go}\ncrash")
    await page.next("message_chunk", content="here")
    await page.ask("send_message", sessionId=session, content="say later", clientMessageId="l")
    (tmp_path / "ready").unlink()
    go.touch()
    await page.next("turn_complete")
    ack = await page.ask("send_message", sessionId=session, content="say now", clientMessageId="n")
    assert ack["type"] == "ack"
    await until((tmp_path / "asked").exists)
    await first.gateway.kill()
    (tmp_path / "ready").touch()
    again = await Page.open(await serve(agents=slow))
    assert waiting((await again.load(session))["session"]["queue"]) == ["l", "n"]
    for id in ("l", "n"):
        assert (await again.ask("send_message", sessionId=session, content="x", clientMessageId=id))[
            "duplicate"
        ]
    await again.ask("send_message", sessionId=session, content="say last")
    for text in ("later", "now", "last"):
        await again.next("message_chunk", content=text)
    assert said(again, session)[1:] == ["say later", "say now", "say last"]


async def test_a_message_that_was_sent_does_not_wait_after_kill_9(serve: Serve, workspace: Path) -> None:
    first = await serve()
    page = await Page.open(first)
    session = await page.new_session(workspace)
    go = workspace / "go"
    page.send("send_message", sessionId=session, content=f"say here\nwait-file {go}")
    await page.next("message_chunk", content="here")
    for id in ("l", "n"):
        await page.ask(
            "send_message", sessionId=session, content=f"say {id}\nsleep-until-cancel", clientMessageId=id
        )
    go.touch()
    await page.next("user_message", clientMessageId="l")
    await first.gateway.kill()
    again = await Page.open(await serve())
    assert waiting((await again.load(session))["session"]["queue"]) == ["n"]
    assert [e["clientMessageId"] for e in again.numbered(session) if e.get("clientMessageId")][-1] == "l"


async def test_a_message_that_is_being_sent_can_not_be_changed_any_more(
    serve: Serve, workspace: Path, tmp_path: Path, slow: Table
) -> None:
    page = await Page.open(await serve(agents=slow))
    session = await page.new_session(workspace)
    go = workspace / "go"
    page.send("send_message", sessionId=session, content=f"say here\nwait-file {go}\ncrash")
    await page.next("message_chunk", content="here")
    await page.ask("send_message", sessionId=session, content="say later", clientMessageId="l")
    (tmp_path / "ready").unlink()
    go.touch()
    await page.next("turn_complete")
    await page.ask("send_message", sessionId=session, content="say now", clientMessageId="n")
    await until((tmp_path / "asked").exists)
    for command in ({"type": "drop_queued"}, {"type": "edit_queued", "content": "say other"}):
        assert (await page.ask(**command, sessionId=session, queuedId="l"))["code"] == "not_queued"
    assert (await page.ask("drop_queued", sessionId=session, queuedId="n"))["type"] == "ack"
    (tmp_path / "ready").touch()
    await page.next("message_chunk", content="later")
    await page.next("turn_complete")  # or the next turn would be taken for over with this one
    await page.turn(session, "say end")
    assert said(page, session)[1:] == ["say later", "say end"]


async def test_a_message_among_the_events_is_not_taken_for_one_that_waits(tmp_path: Path) -> None:
    """As a process leaves it that dies between the two."""
    store = await FileStore.open(tmp_path / "dragoman.db", tmp_path / "run")
    now = timestamps.now()
    record = SessionRecord(
        id="s", agent="a", cwd="/", workspace="/", created_at=now, updated_at=now, state="idle", owner=store.owner.id,
        epoch=1,
    )  # fmt: skip
    await store.create(record)
    queue = [Message(id, [{"type": "text", "text": id}]).as_kept() for id in ("sent", "waits")]
    update = {"sessionUpdate": "user_message_chunk", "_meta": {"dragoman": {"clientMessageId": "sent"}}}
    stored = asyncio.get_running_loop().create_future()
    written = [events.record("queue", queue=queue), events.PROMPT + update_line("s", update)]
    store.append("s", 1, 1, written, stored.set_result)
    assert await stored is None
    recalled = await restore_state(store, "s")
    assert waiting(recalled.queue or []) == ["waits"]
    await store.close()
