"""A journal that is damaged or was brought back, as a page sees it."""

from __future__ import annotations

import shutil
from pathlib import Path

from server.conftest import Serve
from support.clients.bridge_page import Page
from support.serve_process import ServeProcess


def harm(home: Path, session: str, word: bytes) -> None:
    for file in (home / "journal" / session).glob("*.log"):
        file.write_bytes(file.read_bytes().replace(word, word.upper()))


async def test_damaged_events_are_one_event_that_says_so_and_the_rest_follows(
    serve: Serve, home: Path, workspace: Path
) -> None:
    serving = await serve()
    page = await Page.open(serving)
    session = await page.new_session(workspace)
    for word in ("first", "second", "third"):
        await page.turn(session, f"say {word}")
    before = page.numbered(session)
    harm(home, session, b"second")
    other = await Page.open(serving)
    await other.load(session)
    shown = other.numbered(session)
    (lost,) = [event for event in shown if event["type"] == "events_lost"]
    assert "second" not in str(shown).lower().replace("events_lost", "")
    assert [event["seq"] for event in shown] == [
        event["seq"] for event in before if not lost["firstSeq"] <= event["seq"] < lost["seq"]
    ]
    assert other.text(session).startswith("first") and other.text(session).endswith("third")
    other.send("history", sessionId=session, beforeSeq=before[-1]["seq"] + 1, limit=1000)
    history = await other.next("history")
    assert [event["seq"] for event in history["events"]] == [event["seq"] for event in shown]
    assert "Traceback" not in serving.gateway.stderr


async def test_a_page_that_saw_more_than_a_restored_journal_has_is_shown_it_anew(
    serve: Serve, home: Path, workspace: Path, tmp_path: Path
) -> None:
    serving = await serve()
    page = await Page.open(serving)
    session = await page.new_session(workspace)
    await page.turn(session, "say before")
    epoch = (await (await Page.open(serving)).load(session))["session"]["epoch"]
    await stop(serving)
    shutil.copytree(home / "journal" / session, tmp_path / "saved")
    serving = await serve()
    page = await Page.open(serving)
    await page.load(session)
    await page.turn(session, "say lost later")
    seen = page.seqs(session)[-1]
    await stop(serving)
    shutil.rmtree(home / "journal" / session)
    shutil.copytree(tmp_path / "saved", home / "journal" / session)
    lock = home / "journal" / session / "lock"  # as after a loss of power: not given back, and another boot
    lock.write_text(
        '{"epoch":3,"owner":{"node":"n","id":"1-x","address":"unix:/x"},"place":"another boot"}\n'
    )
    serving = await serve()
    page = await Page.open(serving)
    await page.load(session)
    await page.turn(session, "say something else")
    other = await Page.open(serving)
    other.send("resume", sessionId=session, afterSeq=seen, epoch=epoch)
    assert (await other.next("error"))["code"] == "rewound"
    loaded = await other.next("session_loaded")
    assert loaded["afterSeq"] == 0
    await other.next("caught_up")
    assert other.text(session) == page.text(session) and "lost later" not in other.text(session)


async def stop(serving: ServeProcess) -> None:
    serving.gateway.process.terminate()
    await serving.gateway.wait_exit()
