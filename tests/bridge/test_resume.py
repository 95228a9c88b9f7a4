"""A page that was away gets what it lacks, in order, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from server.conftest import Serve
from support.clients.bridge_page import Page
from support.gateway_process import agent
from support.serve_process import ServeProcess


async def test_after_a_drop_exactly_the_missing_events_come(
    page: Page, serving: ServeProcess, workspace: Path
) -> None:
    session = await page.new_session(workspace)
    release = workspace / "go"
    page.send(
        "send_message", sessionId=session, content=f"say one\nwait-file {release}\nsay two\ntool t\nsay end"
    )
    await page.next("message_chunk", content="one")
    had = page.seqs(session)
    await page.close()
    release.touch()
    again = await Page.open(serving)
    again.send("resume", sessionId=session, afterSeq=had[-1])
    loaded = await again.next("session_loaded")
    assert loaded["afterSeq"] == had[-1]
    await again.next("turn_complete")
    await again.next("session_info")
    got = again.seqs(session)
    assert [*had, *got] == list(range(1, len(had) + len(got) + 1))
    assert again.text(session) == "twoend"


async def test_after_kill_9_of_the_server_no_event_is_missing_and_the_turn_has_an_end(
    serve: Serve, workspace: Path
) -> None:
    first = await serve()
    page = await Page.open(first)
    session = await page.new_session(workspace)
    page.send("send_message", sessionId=session, content="toolopen t1\nflood 2000 100\npermission")
    await page.socket.next_message(lambda m: m.get("seq", 0) > 300)
    had = page.numbered(session)[:250]
    await first.gateway.kill()

    second = await serve()
    again = await Page.open(second)
    loaded = await again.load(session, afterSeq=had[-1]["seq"])
    got = again.numbered(session)
    assert [e["seq"] for e in [*had, *got]] == list(range(1, len(had) + len(got) + 1))
    assert loaded["session"]["lastSeq"] == got[-1]["seq"]
    (ended,) = [event for event in got if event["type"] == "turn_complete"]
    assert ended["stopReason"] is None
    assert ended["error"]["code"] == "restart"
    failed = [e for e in got if e["type"] == "tool_call_completed" and e["toolCallId"] == "t1"]
    assert failed[0]["status"] == "failed"
    assert (await again.turn(session, "say back"))[-1]["type"] == "turn_complete"
    assert again.text(session).endswith("back")


async def test_a_question_that_the_restart_ended_is_resolved(serve: Serve, workspace: Path) -> None:
    first = await serve()
    page = await Page.open(first)
    session = await page.new_session(workspace)
    page.send("send_message", sessionId=session, content="permission")
    asked = await page.next("permission_request")
    await first.gateway.kill()
    again = await Page.open(await serve())
    await again.load(session)
    resolved = await again.next("permission_resolved")
    assert (resolved["requestId"], resolved["by"]) == (asked["requestId"], "restart")
    assert resolved["outcome"] == {"outcome": "cancelled"}


async def test_a_tail_begins_near_the_end_and_history_leads_back(
    page: Page, serving: ServeProcess, workspace: Path
) -> None:
    session = await page.new_session(workspace)
    await page.turn(session, "flood 300 20")
    await page.next("session_info")
    last = page.seqs(session)[-1]
    other = await Page.open(serving)
    loaded = await other.load(session, tail=50)
    assert loaded["afterSeq"] == last - 50
    assert other.seqs(session) == list(range(last - 49, last + 1))
    other.send("history", sessionId=session, beforeSeq=last - 49, limit=100)
    back = await other.next("history")
    assert [event["seq"] for event in back["events"]] == list(range(last - 149, last - 49))
    assert back["more"] is True
    other.send("history", sessionId=session, beforeSeq=last - 149, limit=1000, clientMessageId="h")
    back = await other.next("history", clientMessageId="h")
    assert back["events"][0]["seq"] == 1
    assert back["events"][0]["type"] == "user_message"
    assert back["more"] is False


async def test_a_number_that_was_never_given_begins_at_the_beginning(
    page: Page, serving: ServeProcess, workspace: Path
) -> None:
    session = await page.new_session(workspace)
    await page.turn(session, "say hi")
    other = await Page.open(serving)
    loaded = await other.load(session, afterSeq=1000)
    assert loaded["afterSeq"] == 0
    assert other.seqs(session)[0] == 1


@pytest.mark.parametrize("updates", [6000, pytest.param(20_000, marks=pytest.mark.long)])
async def test_a_slow_reader_costs_little_and_misses_nothing(
    serve: Serve, workspace: Path, updates: int
) -> None:
    serving = await serve()
    page, slow = await Page.open(serving), await Page.open(serving)
    session = await page.new_session(workspace)
    await slow.load(session)
    slow.socket.pause()
    before = serving.resident
    await page.turn(session, f"flood {updates} 1000")
    grown = serving.resident - before
    slow.socket.resume()
    await slow.next("turn_complete")
    await slow.next("session_info")
    assert slow.seqs(session) == page.seqs(session) == list(range(1, updates + 4))
    assert grown < 60 * 1024 * 1024, f"{grown} bytes for one slow reader"


async def test_an_output_of_5_mb_comes_whole(page: Page, serving: ServeProcess, workspace: Path) -> None:
    session = await page.new_session(workspace)
    events = await page.turn(session, "tool-output big 5000000")
    done = next(event for event in events if event["type"] == "tool_call_completed")
    assert len(done["result"]) == 5_000_000
    other = await Page.open(serving)
    await other.load(session)
    assert other.numbered(session)[-1]["seq"] == page.numbered(session)[-1]["seq"]


async def test_a_session_of_before_a_restart_opens_without_starting_its_agent(
    serve: Serve, workspace: Path
) -> None:
    agents = {"scripted": agent("--modes", "--config-options", "--late-commands")}
    first = await serve(agents=agents)
    page = await Page.open(first)
    session = await page.new_session(workspace)
    await page.next("commands_available")
    plan = '{"sessionUpdate":"plan","entries":[{"content":"a","priority":"high","status":"pending"}]}'
    usage = '{"sessionUpdate":"usage_update","used":5,"size":10}'
    await page.turn(session, f"update {plan}\nupdate {usage}\nsay hi")
    assert (await page.ask("change_mode", sessionId=session, modeId="code"))["type"] == "ack"
    await first.gateway.kill()
    again = await Page.open(await serve(agents=agents))
    shown = (await again.load(session))["session"]
    assert (shown["state"], shown["live"]) == ("parked", True)
    assert shown["modes"]["currentModeId"] == "code"
    assert [mode["id"] for mode in shown["modes"]["availableModes"]] == ["ask", "code"]
    assert shown["configOptions"][0]["id"] == "model"
    assert shown["commands"][0]["name"] == "plan"
    assert (shown["usage"]["used"], shown["plan"][0]["content"]) == (5, "a")
    assert "agent_revived" not in again.types(session)


async def test_a_page_that_comes_back_before_the_removed_beginning_is_told(
    serve: Serve, workspace: Path
) -> None:
    first = await serve()
    page = await Page.open(first)
    session = await page.new_session(workspace)
    await page.turn(session, "say before")
    last = page.seqs(session)[-1]
    await page.close()
    await first.close()
    await first.gateway.stop()
    second = await serve(sessions={"retain_bytes": 1, "expire_after": 30})
    await second.gateway.logged("session removed by sessions.retain_bytes")
    again = await Page.open(second)
    again.send("resume", sessionId=session, afterSeq=1)
    loaded = await again.next("session_loaded")
    error = await again.next("error", sessionId=session)
    assert (error["code"], loaded["afterSeq"]) == ("pruned", loaded["session"]["firstSeq"] - 1)
    assert f"Events 2 to {loaded['afterSeq']} " in error["message"]
    await again.next("caught_up")
    assert loaded["afterSeq"] >= last
    seqs = [event["seq"] for event in await again.turn(session, "say after")]
    assert seqs == list(range(seqs[0], seqs[-1] + 1)) and seqs[0] > last
    third = await Page.open(second)
    await third.load(session, afterSeq=loaded["afterSeq"])  # it has all that was removed
    assert not [event for event in third.received if event["type"] == "error"]
