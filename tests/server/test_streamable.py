"""ACP over Streamable HTTP at `/acp`."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from support.clients import http2_websocket
from support.clients.streamable_client import StreamableClient
from support.gateway_process import agent
from support.rpc_peer import is_request
from support.serve_process import HttpVersion, ServeProcess

from .conftest import Serve, limited

Connect = Callable[..., Awaitable[StreamableClient]]


@pytest.fixture(params=["HTTP/1.1", "HTTP/2"])
def version(request: pytest.FixtureRequest) -> HttpVersion:
    """Options for a client that speaks this version alone."""
    second = request.param == "HTTP/2"
    return {"http1": not second, "http2": second}


@pytest.fixture
async def connect(serving: ServeProcess, version: HttpVersion) -> AsyncIterator[Connect]:
    """Initialized clients, over both versions of HTTP."""
    peers: list[StreamableClient] = []

    async def start(path: str = "/acp", **params: Any) -> StreamableClient:
        peer = StreamableClient(serving.http(**version), path)
        await peer.initialize(**params)
        peers.append(peer)
        return peer

    yield start
    for peer in peers:
        await peer.close()


@pytest.mark.rule("G-123", "G-125")
async def test_a_whole_conversation_with_a_question_and_a_cancel(connect: Connect, workspace: Path) -> None:
    peer = await connect()
    events = await peer.listen()
    session = await peer.new_session(workspace, events)
    updates = await peer.listen(session)
    first = await peer.prompt(session, "one\ntwo")
    assert (await updates.response_to(first))["result"]["stopReason"] == "end_turn"
    assert updates.texts == ["one", "two"]

    second = await peer.prompt(session, "permission")
    question = (await updates.next(is_request("session/request_permission"))).message
    option = question["params"]["options"][0]["optionId"]
    outcome = {"outcome": {"outcome": "selected", "optionId": option}}
    assert (await peer.post({"id": question["id"], "result": outcome}, session)).status_code == 202
    assert (await updates.response_to(second))["result"]["stopReason"] == "end_turn"

    third = await peer.prompt(session, "say here\nsleep-until-cancel")
    await updates.text("here")
    cancel = {"method": "session/cancel", "params": {"sessionId": session}}
    assert (await peer.post(cancel, session)).status_code == 202
    assert (await updates.response_to(third))["result"]["stopReason"] == "cancelled"
    assert not [event for event in events.events if event.message.get("method") == "session/update"]
    assert updates.response.headers["cache-control"] == "no-cache"


@pytest.mark.rule("G-085", "G-124")
async def test_a_replay_is_read_before_its_response_and_the_session_goes_on(
    connect: Connect, workspace: Path
) -> None:
    peer = await connect()
    events = await peer.listen()
    session = await peer.new_session(workspace, events)
    updates = await peer.listen(session)
    await updates.response_to(await peer.prompt(session, "flood 3000 200"))
    await peer.client.request("DELETE", "/acp", headers=peer.headers())

    again = await connect()
    events = await again.listen()
    updates = await again.listen(session)  # allowed before the load: the session exists
    load = await again.ask(
        "session/load", {"sessionId": session, "cwd": str(workspace), "mcpServers": []}, session
    )
    assert "result" in await events.response_to(load)
    await updates.next(lambda message: "2999 " in str(message))  # handed over; httpx may still be parsing
    assert [text.split()[0] for text in updates.texts] == [str(number) for number in range(3000)]
    more = await again.prompt(session, "more")
    assert (await updates.response_to(more))["result"]["stopReason"] == "end_turn"


async def test_a_load_without_the_session_header_names_its_session(connect: Connect, workspace: Path) -> None:
    """The Python SDK opens a session's stream when a message names the session."""
    peer = await connect()
    events = await peer.listen()
    session = await peer.new_session(workspace, events)
    updates = await peer.listen(session)
    await updates.response_to(await peer.prompt(session, "hello"))
    again = await connect()
    events = await again.listen()
    load = await again.ask("session/load", {"sessionId": session, "cwd": str(workspace), "mcpServers": []})
    assert (await events.response_to(load))["result"]["sessionId"] == session
    updates = await again.listen(session)
    await updates.text("hello")


@pytest.mark.rule("G-125")
async def test_who_comes_back_by_event_id_gets_exactly_what_was_missed(
    connect: Connect, workspace: Path, tmp_path: Path
) -> None:
    peer = await connect()
    events = await peer.listen()
    session = await peer.new_session(workspace, events)
    updates = await peer.listen(session)
    gate = tmp_path / "gate"
    prompt = await peer.prompt(
        session, f"say one\nsay two\nwait-file {gate}\nsay three\npermission\nsay four"
    )
    one = await updates.text("one")
    await updates.text("two")
    await updates.leave()
    gate.touch()

    # As if `two` had been lost on the way: only `one` is acknowledged.
    second = await peer.listen(session, one.id)
    question = await second.next(is_request("session/request_permission"))
    assert second.texts == ["two", "three"]
    await second.leave()

    # The question was seen, so it does not come again; what follows its answer does.
    option = question.message["params"]["options"][0]["optionId"]
    outcome = {"outcome": {"outcome": "selected", "optionId": option}}
    await peer.post({"id": question.message["id"], "result": outcome}, session)
    third = await peer.listen(session, question.id)
    assert (await third.response_to(prompt))["result"]["stopReason"] == "end_turn"
    assert "four" in third.texts
    assert not [event for event in third.events if is_request("session/request_permission")(event.message)]

    # Everything since `one` once more, the prompt's answer too.
    await third.leave()
    fourth = await peer.listen(session, one.id)
    assert (await fourth.response_to(prompt))["result"]["stopReason"] == "end_turn"
    assert [text for text in fourth.texts if text in ("one", "two", "three", "four")] == [
        "two",
        "three",
        "four",
    ]


async def test_a_stream_that_nobody_reads_does_not_hold_another_up(connect: Connect, workspace: Path) -> None:
    peer = await connect()
    events = await peer.listen()
    unread = await peer.new_session(workspace, events)
    read = await peer.new_session(workspace, events)
    await peer.prompt(unread, "flood 20000 1000")  # more than is buffered for it
    updates = await peer.listen(read)
    done = await peer.prompt(read, "flood 2000 1000")
    assert (await updates.response_to(done))["result"]["stopReason"] == "end_turn"
    late = await peer.listen(unread)
    await late.next(lambda message: "method" not in message)
    assert len(late.texts) == 20000


INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
PROMPT = {
    "jsonrpc": "2.0",
    "id": 9,
    "method": "session/prompt",
    "params": {"sessionId": "SESSION", "prompt": []},
}
LIST = {"jsonrpc": "2.0", "id": 9, "method": "session/list", "params": {}}


@pytest.mark.rule("G-120", "G-121", "G-122")
async def test_every_row_of_the_status_table(
    connect: Connect, serving: ServeProcess, workspace: Path
) -> None:
    peer = await connect()
    events = await peer.listen()
    session = await peer.new_session(workspace, events)
    mine = {"Acp-Connection-Id": peer.connection}
    stranger = {"Acp-Connection-Id": "nobody"}
    theirs = {**mine, "Acp-Session-Id": "dgm_nobody"}
    here = {**mine, "Acp-Session-Id": session}
    prompt = {**PROMPT, "params": {"sessionId": session, "prompt": []}}
    load = {"jsonrpc": "2.0", "id": 8, "method": "session/load", "params": {"sessionId": "dgm_x", "cwd": "/"}}
    unknown = {"sessionId": "dgm_nobody"}
    comes_back = {"sessionId": "dgm_nobody", "cwd": "/", "mcpServers": []}
    answer = {"jsonrpc": "2.0", "id": 99, "result": {}}
    stream = {"Accept": "text/event-stream"}
    rows: list[tuple[str, str, dict[str, str], object, int]] = [
        ("initialize with a connection", "POST", mine, INITIALIZE, 400),
        ("accepted", "POST", mine, LIST, 202),
        ("no content type", "POST", {**mine, "Content-Type": "text/plain"}, LIST, 415),
        (
            "parameters are fine",
            "POST",
            {**mine, "Content-Type": "application/json; charset=utf-8"},
            LIST,
            202,
        ),
        ("not JSON", "POST", mine, b"{nonsense", 400),
        ("not an object", "POST", mine, b'"text"', 400),
        ("not JSON-RPC", "POST", mine, b"{}", 400),
        ("not UTF-8", "POST", mine, b'{"jsonrpc":"2.0","method":"\xff"}', 400),
        ("an id that is none", "POST", mine, {**LIST, "id": {"a": 1}}, 400),
        ("a batch", "POST", mine, [LIST], 501),
        ("no connection", "POST", {}, LIST, 400),
        ("unknown connection", "POST", stranger, LIST, 404),
        ("no session header", "POST", mine, prompt, 400),
        ("two sessions", "POST", theirs, prompt, 400),
        ("unknown session", "POST", theirs, {**PROMPT, "params": {"sessionId": "dgm_nobody"}}, 404),
        ("loading is never 404", "POST", mine, load, 202),
        *(
            (
                f"{name} is never 404",
                "POST",
                theirs,
                {**LIST, "id": name, "method": name, "params": params},
                202,
            )
            for name, params in (
                ("session/load", comes_back),
                ("session/resume", comes_back),
                ("session/fork", comes_back),
                ("session/delete", unknown),
            )
        ),
        *(
            (f"{name} of nobody", "POST", theirs, {**LIST, "method": name, "params": unknown}, 404)
            for name in ("session/cancel", "session/close", "session/set_mode", "session/set_config_option")
        ),
        *(
            (f"{name} without the header", "POST", mine, {**LIST, "method": name, "params": unknown}, 400)
            for name in ("session/cancel", "session/close", "session/set_mode", "session/set_config_option")
        ),
        ("an answer to a question", "POST", here, answer, 202),
        ("GET without Accept", "GET", {**mine, "Accept": "application/json"}, None, 406),
        ("GET without a connection", "GET", stream, None, 400),
        ("GET of an unknown connection", "GET", {**stranger, **stream}, None, 404),
        ("GET of an unknown session", "GET", {**theirs, **stream}, None, 404),
        ("a second reader", "GET", {**mine, **stream}, None, 409),
        ("another method", "PUT", mine, LIST, 405),
        ("DELETE without a connection", "DELETE", {}, None, 400),
        ("DELETE of an unknown one", "DELETE", stranger, None, 404),
        ("wrong token", "POST", {**here, "Authorization": "Bearer wrong"}, LIST, 401),
        ("no token", "POST", {**here, "Authorization": ""}, LIST, 401),
        ("DELETE", "DELETE", mine, None, 202),
        ("after DELETE", "POST", mine, LIST, 404),
    ]
    for what, method, headers, body, status in rows:
        content = {"content": body} if isinstance(body, bytes) else {"json": body} if body is not None else {}
        sent = {"Content-Type": "application/json", **headers} if body is not None else headers
        got = await peer.client.request(method, "/acp", headers=sent, **content)
        assert got.status_code == status, f"{what}: {got.status_code} {got.text}"
        if status == 404 and method != "DELETE":
            known = (
                "unknown_session" if mine["Acp-Connection-Id"] in headers.values() else "unknown_connection"
            )
            assert got.json()["code"] == ("unknown_connection" if what == "after DELETE" else known), what
    assert (await peer.client.post("/acp/nobody", json=INITIALIZE)).status_code == 404
    other = await connect()
    elsewhere = await other.client.post("/acp/scripted", json=LIST, headers=other.headers())
    assert elsewhere.status_code == 404, "a connection belongs to its path"
    assert (await other.client.put("/healthz")).status_code == 405


@pytest.mark.rule("G-121")
async def test_a_body_that_is_too_long_is_413(serve: Serve, version: HttpVersion) -> None:
    serving = await serve(limits={"max_message_bytes": 2048})
    client = serving.http(**version)
    assert (await client.post("/acp", json={**INITIALIZE, "x": "y" * 3000})).status_code == 413

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(10):  # few: whoever is cut off while it sends does not see the answer
            yield b" " * 1000

    headers = {"Content-Type": "application/json"}
    assert (await client.post("/acp", content=endless(), headers=headers)).status_code == 413
    assert (await client.get("/readyz")).status_code == 200


@pytest.mark.rule("G-123")
async def test_sessions_that_were_closed_need_no_stream_any_more(serve: Serve, workspace: Path) -> None:
    serving = await serve(prefix=limited(MAX_STREAMS=2))
    peer = StreamableClient(serving.http())
    await peer.initialize()
    events = await peer.listen()

    async def close(session: str) -> int:
        return await peer.ask("session/close", {"sessionId": session}, session)

    for reads in (True, False, True, False):
        session = await peer.new_session(workspace, events)
        if reads:
            updates = await peer.listen(session)
            assert "result" in await updates.response_to(await close(session))
            await updates.leave()
        else:
            await close(session)
    kept = [await peer.new_session(workspace, events) for _ in range(2)]
    new = {"id": 99, "method": "session/new", "params": {"cwd": str(workspace), "mcpServers": []}}
    refused = await peer.post(new)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
    updates = await peer.listen(kept[0])
    assert "result" in await updates.response_to(await close(kept[0]))
    await updates.leave()
    await peer.new_session(workspace, events)
    # Whatever a header names, its answer is read somewhere, and no stream is made for it.
    for number in range(5):
        id = await peer.ask("session/list", {}, f"dgm_{number}")
        assert "result" in await events.response_to(id)
    assert "Traceback" not in serving.gateway.stderr
    await peer.close()


@pytest.mark.rule("G-125")
async def test_the_id_of_another_stream_hides_nothing(serving: ServeProcess, workspace: Path) -> None:
    peer = StreamableClient(serving.http())
    await peer.initialize()
    events = await peer.listen()
    session = await peer.new_session(workspace, events)
    await events.leave()
    asked = [await peer.ask("session/list", {}) for _ in range(3)]
    foreign = await peer.listen(last_id="0.9-00000000")  # of a gateway that is gone
    assert [(await foreign.response_to(id))["id"] for id in asked] == asked
    prompt = await peer.prompt(session, "say one")
    updates = await peer.listen(session, "100000")  # no journal has come that far
    assert "result" in await updates.response_to(prompt)
    assert updates.texts == ["one"]
    old = f"{updates.events[0].id}.3-00000000"
    await updates.leave()
    updates = await peer.listen(session, old)
    assert "result" in await updates.response_to(prompt)
    await peer.close()


@pytest.mark.rule("G-121")
async def test_an_agent_that_does_not_start_is_504(serve: Serve, version: HttpVersion) -> None:
    slow = {"slow": agent("--init-delay", "30")}
    serving = await serve("--agent", "slow", agents=slow, prefix=limited(INITIALIZE_TIMEOUT=0.2))
    for path in ("/acp", "/acp/inline"):
        assert (await serving.http(**version).post(path, json=INITIALIZE)).status_code == 504


@pytest.mark.rule("G-127")
async def test_the_opening_answer_has_a_cookie_for_balancers(
    serving: ServeProcess, version: HttpVersion
) -> None:
    opened = await serving.http(**version).post("/acp", json=INITIALIZE)
    cookie = opened.headers["set-cookie"]
    assert re.fullmatch(r"dragoman_affinity=[0-9a-f]{16}; Path=/; HttpOnly; SameSite=Lax", cookie)
    assert (await serving.socket()).handshake["set-cookie"] == cookie
    assert (await http2_websocket.open_socket(serving)).handshake["set-cookie"] == cookie
    strange = serving.http(token=False, cookies={"dragoman_affinity": cookie[18:34]})
    assert (await strange.post("/acp", json=INITIALIZE)).status_code == 401


async def test_an_initialize_that_fails_opens_no_connection(serving: ServeProcess) -> None:
    answer = await serving.http().post("/acp", json={**INITIALIZE, "params": {"protocolVersion": "x"}})
    assert answer.json()["error"]["code"] == -32602
    assert "acp-connection-id" not in answer.headers


async def test_pages_of_others_are_told_nothing(serving: ServeProcess) -> None:
    client = serving.http()
    for headers in ({"Origin": "http://evil.example"}, {"Host": "evil.example"}):
        answer = await client.post("/acp", json=INITIALIZE, headers=headers)
        assert answer.status_code == 403
        assert not [name for name in answer.headers if name.startswith("access-control")]
    preflight = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    assert (await client.options("/acp", headers=preflight)).status_code == 403
