"""Whose a queued message is: it is sent with the rights that its token has then, also after a restart."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from dragoman.server.auth.named_tokens import TokenFile
from server.conftest import Serve
from support.clients.bridge_page import Event, Page
from support.gateway_process import Table
from support.serve_process import ServeProcess


@pytest.fixture
def tokens(home: Path) -> TokenFile:
    return TokenFile(home / "tokens.json")


def edit(tokens: TokenFile, **changes: object) -> None:
    """Change the one token that there is, as somebody with an editor does."""
    kept = json.loads(tokens.path.read_text())
    kept["tokens"][0].update(changes)
    tokens.path.write_text(json.dumps(kept))


def take_away(tokens: TokenFile, how: str) -> None:
    if how == "revoked":
        tokens.revoke("ann")
    elif how == "expired":
        edit(tokens, expires=time.time() - 1)
    elif how == "role reduced":
        edit(tokens, role="observe")
    else:
        tokens.revoke("ann")
        tokens.create("ann", "control")


async def queue_for(serving: ServeProcess, tokens: TokenFile, workspace: Path, go: Path) -> tuple[Page, str]:
    """A page with the instance's token, and a turn of it for whose end a message of the token ann waits."""
    _, secret = tokens.create("ann", "control")
    page = await Page.open(serving)
    session = await page.new_session(workspace)
    page.send("send_message", sessionId=session, content=f"say here\nwait-file {go}")
    await page.next("message_chunk", content="here")
    ann = await Page.open(serving, headers={"Authorization": f"Bearer {secret}"})
    await ann.load(session)
    ack = await ann.ask("send_message", sessionId=session, content="say of ann", clientMessageId="a")
    assert ack["type"] == "ack"
    return page, session


def last_queue(page: Page, session: str) -> list[Table]:
    changes = [event for event in page.numbered(session) if event["type"] == "queue_changed"]
    found: list[Table] = changes[-1]["queue"]
    return found


@pytest.mark.parametrize("how", ["revoked", "expired", "role reduced", "replaced"])
async def test_a_message_whose_token_lost_its_rights_is_held_and_said_so(
    serving: ServeProcess, tokens: TokenFile, workspace: Path, how: str
) -> None:
    go = workspace / "go"
    page, session = await queue_for(serving, tokens, workspace, go)
    await page.ask("send_message", sessionId=session, content="say of admin", clientMessageId="b")
    take_away(tokens, how)
    go.touch()
    told = await page.next("notice")
    assert "ann" in told["title"] and "not sent" in told["title"]
    await page.next("message_chunk", content="of admin")
    await page.next("turn_complete")
    await page.next("turn_complete")
    (held,) = last_queue(page, session)
    assert held["clientMessageId"] == "a" and "ann" in held["held"]
    assert "of ann" not in page.text(session)
    await page.turn(session, "say more")
    notices = [event for event in page.numbered(session) if event["type"] == "notice"]
    assert len(notices) == 1, "said once"
    assert "of ann" not in page.text(session)


@pytest.mark.parametrize("how", ["kept", "revoked", "role reduced"])
async def test_a_queue_keeps_whose_its_messages_are_over_a_restart(
    serve: Serve, tokens: TokenFile, workspace: Path, how: str
) -> None:
    first = await serve()
    go = workspace / "go"
    _page, session = await queue_for(first, tokens, workspace, go)
    await first.gateway.kill()
    if how != "kept":
        take_away(tokens, how)
    second = await serve()
    again = await Page.open(second)
    assert (await again.load(session))["session"]["queue"][0]["clientMessageId"] == "a"
    await again.ask("send_message", sessionId=session, content="say of admin")
    await again.next("message_chunk", content="of admin")
    assert ("of ann" in again.text(session)) == (how == "kept")
    if how != "kept":
        assert "ann" in (await again.load(session))["session"]["queue"][0]["held"]


async def test_a_held_message_that_somebody_changes_is_sent_in_their_name(
    serving: ServeProcess, tokens: TokenFile, workspace: Path
) -> None:
    go = workspace / "go"
    page, session = await queue_for(serving, tokens, workspace, go)
    tokens.revoke("ann")
    go.touch()
    await page.next("notice")
    await page.next("turn_complete")
    ack = await page.ask("edit_queued", sessionId=session, queuedId="a", content="say of admin now")
    assert ack["type"] == "ack"
    await page.next("message_chunk", content="of admin now")
    assert last_queue(page, session) == []


async def test_a_page_whose_token_was_just_revoked_sends_nothing(
    serving: ServeProcess, tokens: TokenFile, workspace: Path
) -> None:
    _, secret = tokens.create("ann", "control")
    page = await Page.open(serving, headers={"Authorization": f"Bearer {secret}"})
    session = await page.new_session(workspace)
    tokens.revoke("ann")
    page.send("send_message", sessionId=session, content="say no", clientMessageId="x")
    event = await _refusal_or_end(page)
    assert event is None or event["code"] == "role"
    watching = await Page.open(serving)
    await watching.load(session)
    assert "no" not in watching.text(session)


async def _refusal_or_end(page: Page) -> Event | None:
    try:
        return await page.next("error", clientMessageId="x")
    except ConnectionError:
        return None


async def test_pages_do_not_see_what_a_queue_keeps_of_tokens(
    serving: ServeProcess, tokens: TokenFile, workspace: Path
) -> None:
    page, session = await queue_for(serving, tokens, workspace, workspace / "go")
    assert last_queue(page, session)[0].keys() == {"clientMessageId", "content"}
    other = await Page.open(serving)
    loaded = await other.load(session)
    assert loaded["session"]["queue"][0].keys() == {"clientMessageId", "content"}
