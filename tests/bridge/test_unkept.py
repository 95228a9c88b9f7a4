"""A journal that cannot be written: pages see everything, and only what is kept has a number."""

from __future__ import annotations

import json
from pathlib import Path

from support.clients.bridge_page import Page
from support.gateway_process import GatewayProcess, Start, Table, agent
from support.serve_process import ServeProcess, UrlFraming
from support.session_client import resumable_agent
from support.store.failing_store import WRITES, Faults

AGENTS: Table = {"scripted": resumable_agent()}
AT_ONCE: Table = {"write_patience": 0.05}


async def faulty_serve(dragoman: Start, faults: Faults) -> ServeProcess:
    framing = UrlFraming()
    gateway = await faults.start(
        dragoman, "serve", "--port", "0", framing=framing, agents=AGENTS, sessions=AT_ONCE
    )
    return ServeProcess(gateway, await framing.url())


async def test_events_that_are_not_kept_have_no_number_and_the_numbers_go_on_without_a_gap(
    dragoman: Start, workspace: Path, faults: Faults
) -> None:
    serving = await faulty_serve(dragoman, faults)
    page = await Page.open(serving)
    session = await page.new_session(workspace)
    await page.turn(session, "say before")
    faults.fail(*WRITES)
    page.send("send_message", sessionId=session, content="say unkept")
    shown = await page.next("message_chunk", content="unkept")
    assert "seq" not in shown and shown["timestamp"]
    assert "seq" not in await page.next("turn_complete", stopReason="end_turn")
    faults.heal()
    told = await page.socket.next_message(
        lambda event: event["type"] == "notice" and "could not be saved" in event["title"]
    )
    await page.turn(session, "say after")
    assert page.seqs(session) == list(range(1, len(page.seqs(session)) + 1))
    assert told["seq"] in page.seqs(session)
    later = await Page.open(serving)
    await later.load(session)
    assert later.text(session) == "beforeafter"
    assert later.types(session) == page.types(session)
    await serving.close()


async def test_a_page_sees_what_a_process_beside_it_cannot_keep(
    dragoman: Start, workspace: Path, faults: Faults
) -> None:
    owner: GatewayProcess = await faults.start(dragoman, agents=AGENTS, sessions=AT_ONCE)
    await owner.initialize()
    session = await owner.new_session(workspace)
    await owner.prompt(session, "say before")
    framing = UrlFraming()
    gateway = await dragoman("serve", "--port", "0", framing=framing, agents=AGENTS)
    serving = ServeProcess(gateway, await framing.url())
    page = await Page.open(serving)
    await page.load(session)
    faults.fail(*WRITES)
    await owner.prompt(session, "say unkept")
    assert "seq" not in await page.next("message_chunk", content="unkept")
    faults.heal()
    await owner.logged("journal is stored")
    await owner.prompt(session, "say after")
    assert "seq" in await page.next("message_chunk", content="after")
    assert page.seqs(session) == list(range(1, len(page.seqs(session)) + 1))
    await serving.close()


async def test_a_session_of_the_agents_own_that_cannot_be_stored_is_shown_without_numbers_until_it_can(
    dragoman: Start, faults: Faults
) -> None:
    old = [{"sessionId": "old-1", "cwd": "/tmp", "title": "First"}]
    caps = '{"loadSession": true, "sessionCapabilities": {"list": {}}}'
    knowing = agent("--caps", caps, "--list", json.dumps(old), "--load-replay", "3")
    framing = UrlFraming()
    gateway = await faults.start(
        dragoman, "serve", "--port", "0", framing=framing, agents={"scripted": knowing}, sessions=AT_ONCE
    )
    serving = ServeProcess(gateway, await framing.url())
    editor = await serving.socket()
    await editor.initialize()
    await editor.new_session("/tmp")  # so that an agent runs that can be asked for its list
    found = (await editor.request("session/list", {}))["sessions"]
    session = next(each["sessionId"] for each in found if each.get("title") == "First")
    faults.fail("append")
    await editor.request("session/load", {"sessionId": session, "cwd": "/tmp", "mcpServers": []})
    page = await Page.open(serving)
    loaded = await page.load(session)
    assert loaded["afterSeq"] == loaded["session"]["lastSeq"] == 0
    await editor.prompt(session, "say unkept")
    assert "seq" not in await page.next("message_chunk", content="unkept")
    faults.heal()
    await editor.request("session/close", {"sessionId": session})
    await editor.request("session/load", {"sessionId": session, "cwd": "/tmp", "mcpServers": []})
    later = await Page.open(serving)
    await later.load(session)
    assert later.text(session) == "replay 0replay 1replay 2"
    assert later.seqs(session) == list(range(1, len(later.seqs(session)) + 1))
    await serving.close()
