"""The client library against a real `dragoman serve` with a scripted agent."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from client.conftest import Serving
from dragoman.client import (
    CannotConnect,
    CaughtUp,
    Event,
    Gateway,
    NoSuchOption,
    Plan,
    PlanStep,
    Question,
    RequestRefused,
    Session,
    StreamOverflow,
    Text,
    Thought,
    ToolStarted,
    ToolUpdated,
    TurnEnded,
    Unknown,
    UserMessage,
    connect,
    stream,
)
from support.rpc_peer import PATIENCE

ALL_KINDS = "\n".join(
    [
        "think hm",
        "hello",
        "tool one",
        'update {"sessionUpdate": "plan", "entries": [{"content": "a", "status": "pending", "priority": "low"}]}',
        'update {"sessionUpdate": "of_tomorrow", "depth": 3}',
    ]
)


async def seen_until(events: Any, kind: type[Event]) -> list[Event]:
    found: list[Event] = []
    async with asyncio.timeout(PATIENCE):
        async for event in events:
            found.append(event)
            if isinstance(event, kind):
                break
    return found


async def test_a_prompt_is_an_iterator_of_typed_events(gateway: Gateway, workspace: Path) -> None:
    session = await gateway.new(agent="scripted", cwd=workspace)
    events = [event async for event in session.prompt(ALL_KINDS)]
    assert Thought("hm") in [_plain(event) for event in events]
    assert Text("hello") in [_plain(event) for event in events]
    started = next(event for event in events if isinstance(event, ToolStarted))
    assert (started.title, started.kind) == ("Tool one", "execute")
    assert any(isinstance(event, ToolUpdated) and event.ended for event in events)
    plan = next(event for event in events if isinstance(event, Plan))
    assert plan.steps == (PlanStep("a", "pending"),)
    unknown = next(event for event in events if isinstance(event, Unknown))
    assert (unknown.kind, unknown.raw["depth"]) == ("of_tomorrow", 3)
    assert isinstance(events[-1], TurnEnded) and events[-1].stop_reason == "end_turn"
    numbers = [event.seq for event in events if event.seq is not None]
    assert numbers == sorted(set(numbers)) and session.seq >= numbers[-1]


def _plain(event: Event) -> Event:
    return type(event)(event.text) if isinstance(event, Text | Thought) else event


async def test_the_text_of_a_turn_is_its_last_message(gateway: Gateway, workspace: Path) -> None:
    session = await gateway.new(cwd=workspace)
    assert await session.prompt("before\ntool x\nafter").text() == "after"


@pytest.mark.parametrize(("answer", "told"), [("allow", "yes"), ("reject", "no"), ("choose", "always")])
async def test_a_question_is_answered_in_the_loop(
    gateway: Gateway, workspace: Path, answer: str, told: str
) -> None:
    session = await gateway.new(cwd=workspace)
    said = ""
    async for event in session.prompt("permission"):
        if isinstance(event, Question):
            assert event.title == "Run it" and event.open
            if answer == "choose":
                with pytest.raises(NoSuchOption, match="offered are"):
                    event.choose("perhaps")
                event.choose(next(option for option in event.options if option.lasting))
            else:
                getattr(event, answer)()
            assert not event.open
        elif isinstance(event, Text):
            said += event.text
    assert json.loads(said.removeprefix("permission "))["result"]["outcome"]["optionId"] == told


async def test_a_question_that_a_loop_leaves_behind_is_refused(gateway: Gateway, workspace: Path) -> None:
    session = await gateway.new(cwd=workspace)
    assert '"optionId": "no"' in await session.prompt("permission").text()


async def test_a_callback_answers_questions_instead(at_home: Serving, workspace: Path) -> None:
    async def answer(question: Question) -> None:
        await asyncio.sleep(0)
        question.allow()

    async with connect("serve", on_question=answer) as gateway:
        session = await gateway.new(cwd=workspace)
        assert '"optionId": "yes"' in await session.prompt("permission").text()


async def test_cancel_ends_the_turn_and_a_refusal_is_an_exception(gateway: Gateway, workspace: Path) -> None:
    session = await gateway.new(cwd=workspace)
    turn = session.prompt("sleep-until-cancel")
    await seen_until(turn, Text)
    session.cancel()
    assert (await turn.ended()).stop_reason == "cancelled"
    with pytest.raises(RequestRefused, match="no such luck") as refused:
        await session.prompt("error -32055 no such luck").ended()
    assert refused.value.code == -32055
    with pytest.raises(RequestRefused, match="broken"):
        await gateway.new("broken", workspace)


async def test_a_prompt_during_a_turn_waits_in_the_queue(gateway: Gateway, workspace: Path) -> None:
    session = await gateway.new(cwd=workspace)
    watched = session.events()
    first = session.prompt("permission")
    second, third = session.prompt("second"), session.prompt("third")
    question = (await seen_until(watched, Question))[-1]
    queued = await session.queue()
    assert [entry.prompt[0]["text"] for entry in queued] == ["second", "third"]
    await session.edit_queued(queued[0].id, "changed")
    third.withdraw()
    assert (await third.ended()).stop_reason == "cancelled"
    assert isinstance(question, Question)
    question.allow()
    assert "permission" in await first.text()
    assert await second.text() == "changed"
    watched.close()


async def test_a_prompt_that_is_taken_back_before_it_is_refused_does_not_wait(
    gateway: Gateway, workspace: Path
) -> None:
    session = await gateway.new(cwd=workspace)
    first, second = session.prompt("sleep-until-cancel"), session.prompt("never")
    second.withdraw()
    assert (await second.ended()).stop_reason == "cancelled"
    assert await session.queue() == []
    session.cancel()
    assert (await first.ended()).stop_reason == "cancelled"


async def test_a_session_is_resumed_after_the_last_event_seen(
    at_home: Serving, gateway: Gateway, workspace: Path
) -> None:
    session = await gateway.new(cwd=workspace)
    await session.prompt("one").ended()
    cursor = session.seq
    await session.prompt("two").ended()
    async with connect(at_home.socket) as other:
        again = await other.resume(session.id, after=cursor)
        assert again.cwd == str(workspace)
        seen = await seen_until(again.events(), CaughtUp)
        said = [event.text for event in seen if isinstance(event, Text | UserMessage)]
        assert said == ["two", "two"], "the prompt and its answer, without those before"
        whole = await other.resume(session.id, after=0)
        seen = await seen_until(whole.events(), CaughtUp)
        assert [event.text for event in seen if isinstance(event, Text)] == ["one", "two"]
    with pytest.raises(LookupError, match="sessions list"):
        await gateway.resume("dgm_nothing")


async def test_another_client_sees_the_events_and_the_end_of_a_turn(
    at_home: Serving, gateway: Gateway, workspace: Path
) -> None:
    session = await gateway.new(cwd=workspace)
    async with connect("serve") as other:
        watching = await other.resume(session.id, workspace, watch=True)
        events = watching.events()
        await session.prompt("hello").ended()
        seen = await seen_until(events, TurnEnded)
        ended = seen[-1]
        assert isinstance(ended, TurnEnded) and not ended.own and ended.stop_reason == "end_turn"
        assert [event.text for event in seen if isinstance(event, Text)] == ["hello"]
        listed = [info async for info in other.sessions(workspace)]
        assert [(info.id, info.agent) for info in listed] == [(session.id, "scripted")]


async def test_a_url_with_its_token_is_a_way_to_the_gateway(at_home: Serving, workspace: Path) -> None:
    async with connect(at_home.url) as gateway:
        session = await gateway.new(cwd=workspace)
        assert await session.prompt("over the network").text() == "over the network"
    with pytest.raises(CannotConnect, match="token"):
        await connect(at_home.url.partition("?")[0], token="wrong")


async def test_what_cannot_be_reached_is_told_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(CannotConnect, match="start one"):
        await connect(tmp_path / "no.sock")
    with pytest.raises(CannotConnect, match="full path of a socket"):
        await connect("somewhere")
    with pytest.raises(CannotConnect, match="http"):
        await connect("ftp://host/x")


async def test_a_lost_connection_is_restored_and_the_turn_goes_on(gateway: Gateway, workspace: Path) -> None:
    session = await gateway.new(cwd=workspace)
    turn = session.prompt("before\npermission\nafter")
    said: list[str] = []
    notices: list[str] = []
    async with asyncio.timeout(PATIENCE):
        async for event in turn:
            if isinstance(event, Question):
                _cut(gateway)
                event.allow()
            elif isinstance(event, Text):
                said.append(event.text)
            elif event.raw == {}:
                notices.append(str(event))
    assert [text for text in said if not text.startswith("permission")] == ["before", "after"]
    assert "lost" in notices[0] and "connected again" in notices[-1]


def _cut(gateway: Gateway) -> None:
    """Break the connection as a network does."""
    remote: Any = gateway.connection.peer.link
    remote._channel._reader.abort()


async def test_an_unread_turn_stops_the_connection_and_loses_nothing(
    gateway: Gateway, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "FULL_EVENTS", 20)
    session = await gateway.new(cwd=workspace)
    turn = session.prompt("flood 2000 200")
    flow = gateway.connection.flow
    async with asyncio.timeout(PATIENCE):
        while not flow.paused:
            await asyncio.sleep(0)
    texts = [event.text async for event in turn if isinstance(event, Text)]
    assert [int(text.split()[0]) for text in texts] == list(range(2000))
    assert not flow.paused


async def test_a_call_is_answered_while_a_stream_is_full_and_a_left_loop_frees_it(
    gateway: Gateway, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "FULL_EVENTS", 20)
    session, other = await gateway.new(cwd=workspace), await gateway.new(cwd=workspace)
    async with asyncio.timeout(PATIENCE):
        async for event in session.prompt("flood 2000 200"):
            if isinstance(event, Text):
                assert await other.prompt("inside the loop").text() == "inside the loop"
                break
        assert await session.prompt("next").text() == "next"


async def test_a_stream_that_is_never_read_fails_with_its_cursor(
    gateway: Gateway, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "MOST_BYTES", 100_000)
    session: Session = await gateway.new(cwd=workspace)
    watched = session.events()
    await session.send("flood 1000 200").ended()
    with pytest.raises(StreamOverflow, match="resume it after event"):
        async for _ in watched:
            pass
