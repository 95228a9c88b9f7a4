"""Pages that come at any moment of a turn: numbers without a gap, the same events for all."""

from __future__ import annotations

import asyncio
from pathlib import Path

from support.clients.bridge_page import Event, Page
from support.clients.joining_clients import release, stepped
from support.serve_process import ServeProcess

STEPS = 8


def without_time(events: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{**event, "timestamp": None} for event in events]


async def test_whenever_a_page_comes_it_sees_every_event_once(
    page: Page, serving: ServeProcess, workspace: Path
) -> None:
    session = await page.new_session(workspace)
    page.send("send_message", sessionId=session, content=stepped(workspace, STEPS))
    comers: list[Page] = []
    loads: list[asyncio.Future[Event]] = []
    for step in range(STEPS):
        comer = await Page.open(serving)
        comers.append(comer)
        loads.append(asyncio.ensure_future(comer.load(session)))
        release(workspace, step)
    await page.next("turn_complete")
    await page.turn(session, "say settled")
    whole = page.numbered(session)
    assert [event["seq"] for event in whole] == list(range(1, len(whole) + 1))
    await asyncio.gather(*loads)
    for number, comer in enumerate(comers):
        await comer.next("message_chunk", content="settled")
        await comer.socket.next_message(lambda m: m.get("seq") == whole[-1]["seq"])
        assert without_time(comer.numbered(session)[: len(whole)]) == without_time(whole), f"comer {number}"


async def test_during_a_flood_each_attach_moment_is_seamless(
    page: Page, serving: ServeProcess, workspace: Path
) -> None:
    session = await page.new_session(workspace)
    page.send("send_message", sessionId=session, content="flood 4000 60")
    comers = []
    for moment in range(100, 4000, 650):
        await page.socket.next_message(lambda m, moment=moment: m.get("seq", 0) >= moment)  # type: ignore[misc]
        comer = await Page.open(serving)
        comer.send("resume", sessionId=session, afterSeq=moment)
        comers.append((moment, comer))
    done = await page.next("turn_complete")
    for moment, comer in comers:
        await comer.socket.next_message(lambda m: m.get("seq") == done["seq"])
        assert comer.seqs(session)[: done["seq"] - moment] == list(range(moment + 1, done["seq"] + 1))
