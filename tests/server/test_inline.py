"""POST `/acp/inline`, answered in the response; GET `/acp/events` for what comes between prompts."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from support.clients.streamable_client import Event, Stream
from support.gateway_process import agent
from support.rpc_peer import Message, is_request, is_update, text_of
from support.serve_process import ServeProcess

from .conftest import Serve

pytestmark = pytest.mark.rule("G-131")


class Inline:
    """A client that has nothing but POST and GET."""

    def __init__(self, serving: ServeProcess, path: str = "/acp/inline", **options: Any) -> None:
        self.client = serving.http(**options)
        self.path = path
        self.streams: list[Stream] = []

    async def post(self, message: Any, **more: Any) -> Any:
        return await self.client.post(self.path, json=message, **more)

    async def ask(self, method: str, params: Message | None = None, id: object = 7) -> Message:
        body = {"jsonrpc": "2.0", "id": id, "method": method}
        answer = await self.post(body if params is None else {**body, "params": params})
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/json"
        found: Message = answer.json()
        assert found["id"] == id
        return found

    async def new_session(self, cwd: Path) -> str:
        return str(
            (await self.ask("session/new", {"cwd": str(cwd), "mcpServers": []}))["result"]["sessionId"]
        )

    async def prompt(self, session: str, script: str, id: object = 9) -> Stream:
        params = {"sessionId": session, "prompt": [{"type": "text", "text": script}]}
        return await self.stream("session/prompt", params, id)

    async def stream(self, method: str, params: Message, id: object = 9) -> Stream:
        body = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        return await self._open(self.client.build_request("POST", self.path, json=body, timeout=None))

    async def events(self, session: str, **headers: str) -> Stream:
        query = {"session": session}
        return await self._open(
            self.client.build_request("GET", "/acp/events", params=query, headers=headers, timeout=None)
        )

    async def _open(self, request: Any) -> Stream:
        response = await self.client.send(request, stream=True)
        assert response.status_code == 200, await response.aread()
        assert response.headers["content-type"] == "text/event-stream", await response.aread()
        stream = Stream(response)
        stream.task = asyncio.create_task(stream.pump())
        self.streams.append(stream)
        return stream

    async def finish(self, stream: Stream) -> Message:
        """The last event, which is the answer, and then the end."""
        assert stream.task is not None
        await asyncio.wait_for(stream.task, 20)
        return stream.events[-1].message

    async def run(self, session: str, script: str) -> tuple[list[str], Message]:
        stream = await self.prompt(session, script)
        answer = await self.finish(stream)
        return stream.texts, answer


def texts_of(events: list[Event]) -> list[str]:
    messages = (event.message for event in events if is_update()(event.message))
    return [text for text in (text_of(each["params"]["update"]) for each in messages) if text]


Connect = Callable[..., Awaitable[Inline]]


@pytest.fixture(params=["HTTP/1.1", "HTTP/2"])
async def inline(serving: ServeProcess, request: pytest.FixtureRequest) -> AsyncIterator[Inline]:
    second = request.param == "HTTP/2"
    client = Inline(serving, http1=not second, http2=second)
    yield client
    for stream in client.streams:
        await stream.leave()


@pytest.fixture
async def plain(serving: ServeProcess) -> AsyncIterator[Inline]:
    client = Inline(serving)
    yield client
    for stream in client.streams:
        await stream.leave()


async def test_a_prompt_is_a_stream_that_its_answer_ends(inline: Inline, workspace: Path) -> None:
    result = (await inline.ask("initialize", {"protocolVersion": 1}))["result"]
    assert result["protocolVersion"] == 1
    assert "clientId" not in result and "list" in result["agentCapabilities"]["sessionCapabilities"]
    session = await inline.new_session(workspace)
    stream = await inline.prompt(session, "one\ntwo", id="seven")
    answer = await inline.finish(stream)
    assert answer == {"jsonrpc": "2.0", "id": "seven", "result": {"stopReason": "end_turn"}}
    assert stream.texts == ["one", "two"]
    assert stream.response.headers["cache-control"] == "no-cache"
    listed = (await inline.ask("session/list"))["result"]["sessions"]
    assert [(each["sessionId"], each["cwd"]) for each in listed] == [(session, str(workspace))]
    elsewhere = {"cwd": str(workspace.parent)}
    assert (await inline.ask("session/list", elsewhere))["result"]["sessions"] == []


async def test_all_sessions_are_listed_at_once(plain: Inline, serving: ServeProcess, workspace: Path) -> None:
    made = {await plain.new_session(workspace) for _ in range(55)}
    listed = (await plain.ask("session/list"))["result"]
    assert {each["sessionId"] for each in listed["sessions"]} == made
    assert "nextCursor" not in listed
    socket = await serving.socket()
    await socket.initialize()
    page = await socket.request("session/list", {})
    assert len(page["sessions"]) == 50 and page["nextCursor"]


async def test_which_program_a_client_is_is_logged(plain: Inline, serving: ServeProcess) -> None:
    for name in ("first", "second"):
        await plain.ask("initialize", {"protocolVersion": 1, "clientInfo": {"name": name, "version": "1"}})
        await serving.gateway.logged(rf'level=info [^\n]*clientInfo="{name} 1"')


async def test_nothing_has_to_be_initialized_and_initialize_may_come_again(
    plain: Inline, workspace: Path
) -> None:
    session = await plain.new_session(workspace)
    texts, answer = await plain.run(session, "hello")
    assert (texts, answer["result"]["stopReason"]) == (["hello"], "end_turn")
    first = await plain.ask("initialize")  # not even a version
    assert await plain.ask("initialize", {"protocolVersion": 1}) == first
    assert (await plain.ask("initialize", {"protocolVersion": "1"}))["error"]["code"] == -32602


async def test_a_question_is_answered_by_another_post(plain: Inline, workspace: Path) -> None:
    session = await plain.new_session(workspace)
    stream = await plain.prompt(session, "permission\nsay done")
    question = (await stream.next(is_request("session/request_permission"))).message
    outcome = {"outcome": {"outcome": "selected", "optionId": question["params"]["options"][0]["optionId"]}}
    answer = {"jsonrpc": "2.0", "id": question["id"], "result": outcome}
    posted = await plain.post(answer)
    assert (posted.status_code, posted.content) == (202, b"")
    assert (await plain.finish(stream))["result"]["stopReason"] == "end_turn"
    assert "done" in stream.texts
    assert (await plain.post({**answer, "id": "999-1"})).status_code == 404
    assert (await plain.post({**answer, "id": 5})).status_code == 404


async def test_callers_with_the_same_ids_do_not_meet(serving: ServeProcess, workspace: Path) -> None:
    clients = [Inline(serving) for _ in range(5)]
    sessions = [await each.new_session(workspace) for each in clients]
    together = [each.run(session, f"say {session}") for each, session in zip(clients, sessions, strict=True)]
    for (texts, answer), session in zip(await asyncio.gather(*together), sessions, strict=True):
        assert texts == [session]
        assert answer["id"] == 9


async def test_a_turn_is_cancelled_by_a_notification_or_by_a_request(plain: Inline, workspace: Path) -> None:
    session = await plain.new_session(workspace)
    for form in ({}, {"id": 3}):
        stream = await plain.prompt(session, "say here\nsleep-until-cancel")
        await stream.text("here")
        cancel = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}, **form}
        posted = await plain.post(cancel)
        if form:
            assert posted.json() == {"jsonrpc": "2.0", "id": 3, "result": {}}
        else:
            assert (posted.status_code, posted.content) == (202, b"")
        assert (await plain.finish(stream))["result"]["stopReason"] == "cancelled"
    unknown = {"sessionId": "dgm_nobody"}
    assert (await plain.ask("session/cancel", unknown))["result"] == {}
    assert (
        await plain.post({"jsonrpc": "2.0", "method": "session/cancel", "params": unknown})
    ).status_code == 202


async def test_what_is_refused_is_a_plain_answer(inline: Inline, workspace: Path) -> None:
    session = await inline.new_session(workspace)
    text = [{"type": "text", "text": "hi"}]
    rows: list[tuple[str, Any, int]] = [
        ("initialize", [], -32602),
        ("session/list", [], -32602),
        ("session/new", {}, -32602),
        ("session/new", {"cwd": "relative"}, -32602),
        ("session/prompt", {"sessionId": "dgm_nobody", "prompt": text}, -32002),
        ("session/prompt", {"prompt": text}, -32602),
        ("session/prompt", {"sessionId": session, "prompt": []}, -32602),
        ("session/nonsense", {}, -32601),
    ]
    for method, params, code in rows:
        assert (await inline.ask(method, params))["error"]["code"] == code, method
    stream = await inline.prompt(session, "say here\nsleep-until-cancel")
    await stream.text("here")
    second = await inline.ask("session/prompt", {"sessionId": session, "prompt": text})
    assert second["error"]["data"]["reason"] == "prompt_in_flight"
    await inline.ask("session/cancel", {"sessionId": session})
    assert (await inline.finish(stream))["result"]["stopReason"] == "cancelled"


async def test_what_is_no_message_has_a_status(plain: Inline, serving: ServeProcess) -> None:
    json = {"Content-Type": "application/json"}
    ask = {"jsonrpc": "2.0", "id": 1, "method": "session/list"}
    rows: list[tuple[bytes, int, int]] = [
        (b"{nonsense", 400, -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', 400, -32700),
        (b'"text"', 400, -32600),
        (b'{"id":1,"method":"session/list"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"session/list"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1}', 400, -32600),
        (b"[]", 501, -32600),
    ]
    for body, status, code in rows:
        answer = await plain.client.post("/acp/inline", content=body, headers=json)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), body
    assert (await plain.client.post("/acp/inline", content=b"{}")).status_code == 415
    assert (await plain.client.get("/acp/inline")).status_code == 405
    assert (await serving.http(token=False).post("/acp/inline", json=ask)).status_code == 401
    for query, status in (({}, 400), ({"session": "dgm_nobody"}, 404)):
        assert (await plain.client.get("/acp/events", params=query)).status_code == status
    bad = {"Last-Event-ID": "x"}
    assert (await plain.client.get("/acp/events?session=x", headers=bad)).status_code == 400
    html = {"Accept": "text/html"}
    assert (await plain.client.get("/acp/events?session=x", headers=html)).status_code == 406


async def test_an_observer_watches_and_does_nothing_else(serving: ServeProcess, workspace: Path) -> None:
    admin = Inline(serving)
    session = await admin.new_session(workspace)
    made = await admin.client.post("/api/tokens", json={"name": "eye", "role": "observe"})
    eye = Inline(serving, token=False)
    eye.client.headers["authorization"] = f"Bearer {made.json()['secret']}"
    events = await eye.events(session)
    prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "x"}]}
    for method, params in (("session/prompt", prompt), ("session/cancel", prompt), ("session/new", {})):
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        assert (await eye.post(body)).status_code == 403, method
    assert len((await eye.ask("session/list"))["result"]["sessions"]) == 1
    stream = await admin.prompt(session, "permission\nsay done")
    question = (await stream.next(is_request("session/request_permission"))).message
    outcome = {"outcome": {"outcome": "selected", "optionId": "yes"}}
    answer = {"jsonrpc": "2.0", "id": question["id"], "result": outcome}
    assert (await eye.post(answer)).status_code == 404  # another token's question
    assert (await admin.post(answer)).status_code == 202
    await events.text("done")
    assert not [each for each in events.events if is_request("session/request_permission")(each.message)]
    for each in (stream, events):
        await each.leave()


async def test_updates_between_prompts_come_on_the_sessions_events(plain: Inline, workspace: Path) -> None:
    session = await plain.new_session(workspace)
    events = await plain.events(session)
    other = await plain.events(session)
    await plain.run(session, "say now")
    for each in (events, other):
        seen = await each.text("now")
        assert seen.id is not None
    await plain.run(session, "late-update later")
    later = await events.text("later")
    await events.leave()
    await plain.run(session, "say last")
    again = await plain.events(session, **{"Last-Event-ID": seen.id or ""})
    await again.text("last")
    assert [text for text in again.texts if text] == ["later", "last"]
    assert int(later.id or 0) > int(seen.id or 0)


async def test_a_question_can_be_answered_where_the_session_is_watched(
    plain: Inline, workspace: Path
) -> None:
    session = await plain.new_session(workspace)
    events = await plain.events(session)
    stream = await plain.prompt(session, "permission")
    question = (await events.next(is_request("session/request_permission"))).message
    outcome = {"outcome": {"outcome": "selected", "optionId": question["params"]["options"][0]["optionId"]}}
    await plain.post({"jsonrpc": "2.0", "id": question["id"], "result": outcome})
    assert (await plain.finish(stream))["result"]["stopReason"] == "end_turn"
    withdrawn = [each.message for each in stream.events if each.message.get("method") == "$/cancel_request"]
    asked = [
        each.message["id"] for each in stream.events if is_request("session/request_permission")(each.message)
    ]
    assert [each["params"]["requestId"] for each in withdrawn] == asked


async def test_a_reader_that_is_cut_off_finds_the_rest_on_the_events(
    plain: Inline, workspace: Path, tmp_path: Path
) -> None:
    session = await plain.new_session(workspace)
    gate = tmp_path / "gate"
    stream = await plain.prompt(session, f"say one\nwait-file {gate}\nsay two")
    one = await stream.text("one")
    await stream.leave()
    events = await plain.events(session, **{"Last-Event-ID": one.id or ""})
    gate.touch()
    await events.text("two")
    ended = await events.next(lambda m: "stopReason" in str(m))
    assert ended.message["params"]["update"]["_meta"]["dragoman"]["stopReason"] == "end_turn"


async def test_a_turn_ends_with_its_reader_when_that_is_configured(serve: Serve, workspace: Path) -> None:
    serving = await serve(sessions={"on_disconnect": "cancel"})
    client = Inline(serving)
    session = await client.new_session(workspace)
    events = await client.events(session)
    stream = await client.prompt(session, "say here\nsleep-until-cancel")
    await stream.text("here")
    await stream.leave()
    await events.next(lambda m: "cancelled" in str(m))
    texts, _ = await client.run(session, "say on")  # the session itself goes on
    assert texts == ["on"]
    await events.leave()


async def test_a_session_is_known_after_a_restart(serve: Serve, workspace: Path) -> None:
    first = await serve()
    client = Inline(first)
    session = await client.new_session(workspace)
    stream = await client.prompt(session, "flood 20000 60\nsleep-until-cancel")
    seen = await stream.next(lambda m: "500 " in str(m))
    await first.gateway.kill()
    had = stream.events[: stream.events.index(seen) + 1]

    second = Inline(await serve())
    events = await second.events(session, **{"Last-Event-ID": seen.id or ""})
    await events.next(lambda m: '"state": "interrupted"' in json.dumps(m))
    counted = [int(text.split()[0]) for text in texts_of([*had, *events.events])]
    assert counted == list(range(len(counted))), "no gap, nothing twice"
    assert len(counted) > 500
    texts, answer = await second.run(session, "say after")
    assert ("after" in texts, answer["result"]["stopReason"]) == (True, "end_turn")
    await events.text("after")
    await events.leave()
    stream = await second.stream(
        "session/load", {"sessionId": session, "cwd": str(workspace), "mcpServers": []}
    )
    assert "result" in await second.finish(stream)
    assert len([text for text in stream.texts if text[0].isdigit()]) == len(counted)


async def test_a_stream_ends_with_its_session(plain: Inline, workspace: Path) -> None:
    session = await plain.new_session(workspace)
    events = await plain.events(session)
    assert (await plain.ask("session/close", {"sessionId": session}))["result"] == {}
    assert events.task is not None
    await asyncio.wait_for(events.task, 10)


async def test_without_a_journal_a_session_lives_on_between_posts(serve: Serve, workspace: Path) -> None:
    client = Inline(await serve(sessions={"journal": False}))
    session = await client.new_session(workspace)
    for word in ("one", "two"):
        texts, answer = await client.run(session, f"say {word}")
        assert (texts, answer["result"]["stopReason"]) == ([word], "end_turn")
    stream = await client.prompt(session, "flood 5000 1000")
    assert (await client.finish(stream))["result"]["stopReason"] == "end_turn"
    assert len(stream.texts) == 5000


async def test_acp_itself_is_inline_when_configured(serve: Serve, workspace: Path) -> None:
    serving = await serve(serve={"inline": True}, agents={"scripted": agent(), "other": agent()})
    client = Inline(serving, "/acp")
    session = await client.new_session(workspace)
    assert (await client.run(session, "hello"))[0] == ["hello"]
    opened = await client.post(
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
    )
    assert "acp-connection-id" in opened.headers  # either shape of client may follow
    listing = {"jsonrpc": "2.0", "id": 2, "method": "session/list", "params": {}}
    connected = {"Acp-Connection-Id": opened.headers["acp-connection-id"]}
    assert (await client.post(listing, headers=connected)).status_code == 202
    bound = Inline(serving, "/acp/other")
    refused = await bound.ask(
        "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "x"}]}
    )
    assert refused["error"]["code"] == -32002
    remark = {"jsonrpc": "2.0", "method": "_x/remark", "params": {"sessionId": session}}
    assert (await bound.post(remark)).status_code == 404
    assert (await client.post(remark)).status_code == 202
    assert (await Inline(serving, "/acp/nobody").post(listing)).status_code == 404


async def test_acp_itself_is_not_inline_by_default(plain: Inline) -> None:
    plain.path = "/acp"
    assert (await plain.post({"jsonrpc": "2.0", "id": 1, "method": "session/list"})).status_code == 400


async def test_a_shutdown_answers_the_prompt_and_ends_the_streams(
    serving: ServeProcess, plain: Inline, workspace: Path
) -> None:
    session = await plain.new_session(workspace)
    events = await plain.events(session)
    stream = await plain.prompt(session, "say here\nsleep-until-cancel")
    await stream.text("here")
    serving.gateway.process.send_signal(signal.SIGTERM)
    assert (await plain.finish(stream))["error"]["data"]["reason"] == "shutdown"
    assert events.task is not None
    await asyncio.wait_for(events.task, 10)
    assert await serving.gateway.wait_exit() == 0
