"""Messages of pages and prompts of ACP clients that wait for the same turn keep one order."""

from __future__ import annotations

import asyncio
from pathlib import Path

from server.conftest import Serve
from support.clients.bridge_page import Page
from support.command_line import CommandLine
from support.session_client import resume


async def test_messages_of_pages_and_prompts_of_clients_are_sent_in_the_order_in_which_they_came(
    serve: Serve, workspace: Path, tmp_path: Path
) -> None:
    serving = await serve(sessions={"queue": 5})
    page = await Page.open(serving)
    session = await page.new_session(workspace)
    socket = await serving.socket()
    await socket.initialize()
    await resume(socket, session, workspace)
    go = tmp_path / "go"
    page.send("send_message", sessionId=session, content=f"say here\nwait-file {go}")
    await page.next("message_chunk", content="here")
    turns = []
    for number in range(4):
        await page.ask("send_message", sessionId=session, content=f"say p{number}")
        turns.append(socket.start_prompt(session, f"say c{number}"))
        await socket.request("_dragoman/queue", {"sessionId": session})
    go.touch()
    for turn in turns:
        assert (await turn).stop_reason == "end_turn"
    said = [event["content"]["text"] for event in page.numbered(session) if event["type"] == "user_message"]
    assert said[1:] == [f"say {who}{number}" for number in range(4) for who in "pc"]


async def test_a_stop_holds_what_pages_wrote_and_cancels_what_clients_queued(
    serve: Serve, workspace: Path
) -> None:
    serving = await serve(sessions={"queue": 5})
    page = await Page.open(serving)
    session = await page.new_session(workspace)
    socket = await serving.socket()
    await socket.initialize()
    await resume(socket, session, workspace)
    page.send("send_message", sessionId=session, content="say here\nsleep-until-cancel")
    await page.next("message_chunk", content="here")
    await page.ask("send_message", sessionId=session, content="say p", clientMessageId="p")
    turn = socket.start_prompt(session, "say c")
    await socket.request("_dragoman/queue", {"sessionId": session})
    await page.ask("cancel_turn", sessionId=session)
    assert (await turn).stop_reason == "cancelled"
    await page.next("turn_complete")
    held = (await (await Page.open(serving)).load(session))["session"]["queue"]
    assert [(each["clientMessageId"], each.get("stopped")) for each in held] == [("p", True)]


async def test_messages_of_pages_are_listed_edited_and_withdrawn_among_prompts(
    serve: Serve, workspace: Path, tmp_path: Path
) -> None:
    serving = await serve(sessions={"queue": 5})
    page = await Page.open(serving)
    session = await page.new_session(workspace)
    rest, go = serving.http(), tmp_path / "go"
    place = f"/api/sessions/{session}/queue"
    page.send("send_message", sessionId=session, content=f"say here\nwait-file {go}")
    await page.next("message_chunk", content="here")
    await page.ask("send_message", sessionId=session, content="say p0", clientMessageId="p0")
    socket = await serving.socket()
    await socket.initialize()
    await resume(socket, session, workspace)
    turn = socket.start_prompt(session, "say c")
    await socket.request("_dragoman/queue", {"sessionId": session})  # it waits before p1 comes
    await page.ask("send_message", sessionId=session, content="say p1", clientMessageId="p1")
    listed = (await socket.request("_dragoman/queue", {"sessionId": session}))["queue"]
    assert [one["prompt"][0]["text"] for one in listed] == ["say p0", "say c", "say p1"]
    assert [one["own"] for one in listed] == [False, True, False]
    assert [one["id"] for one in (await rest.get(place)).json()["queue"]] == [one["id"] for one in listed]
    assert (await rest.patch(f"{place}/p0", json={"prompt": "say changed"})).status_code == 204
    assert (await rest.delete(f"{place}/p1")).status_code == 204
    gone = await rest.delete(f"{place}/p1")
    assert (gone.status_code, gone.json()["code"]) == (404, "not_queued")
    go.touch()
    await turn
    await page.next("message_chunk", content="c")
    said = [event["content"]["text"] for event in page.numbered(session) if event["type"] == "user_message"]
    assert said[1:] == ["say changed", "say c"]


async def test_a_command_on_this_machine_edits_what_a_page_queued(
    serve: Serve, workspace: Path, tmp_path: Path, home: Path
) -> None:
    serving = await serve()
    page = await Page.open(serving)
    session = await page.new_session(workspace)
    go = tmp_path / "go"
    page.send("send_message", sessionId=session, content=f"say here\nwait-file {go}")
    await page.next("message_chunk", content="here")
    await page.ask("send_message", sessionId=session, content="say p0", clientMessageId="p0")
    config = (home / "config.toml").read_text()
    shell = CommandLine(home, workspace)
    (home / "config.toml").write_text(config)
    done = await asyncio.to_thread(shell.run, "queue", session)
    assert "p0" in done.stdout and "say p0" in done.stdout, done.stderr
    done = await asyncio.to_thread(shell.run, "queue", session, "edit", "p0", "say from a shell")
    assert done.returncode == 0, done.stderr
    go.touch()
    await page.next("message_chunk", content="from a shell")
