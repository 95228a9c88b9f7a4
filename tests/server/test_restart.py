"""`kill -9` in mid-stream, a restart, and nothing is missing, whatever the client speaks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from support.clients.streamable_client import Stream, StreamableClient
from support.gateway_process import LINE_LIMIT, GatewayProcess, Start
from support.rpc_peer import Message, RpcPeer, is_update, text_of

from .conftest import Serve

SEQ = {"clientCapabilities": {"_meta": {"dragoman": {"seq": True}}}}
SCRIPT = "flood 5000 100\nsleep-until-cancel"

Connect = Callable[[], Awaitable[tuple[GatewayProcess, RpcPeer]]]


@pytest.fixture(params=["websocket", "unix", "tcp"])
def connect(request: pytest.FixtureRequest, serve: Serve, dragoman: Start, home: Path) -> Connect:
    """Start a gateway and speak to it, each time anew."""

    async def websocket() -> tuple[GatewayProcess, RpcPeer]:
        serving = await serve()
        return serving.gateway, await serving.socket()

    async def unix() -> tuple[GatewayProcess, RpcPeer]:
        serving = await serve()
        streams = await asyncio.open_unix_connection(str(home / "run" / "dragoman.sock"), limit=LINE_LIMIT)
        peer = RpcPeer(*streams)
        serving.gateway.connections.append(peer)
        return serving.gateway, peer

    async def tcp() -> tuple[GatewayProcess, RpcPeer]:
        gateway = await dragoman("acp", "scripted", "--port", "0")
        port = (await gateway.logged(r"Listening on \S+:(\d+)"))[1]
        return gateway, await gateway.connect(int(port))

    ways: dict[str, Connect] = {"websocket": websocket, "unix": unix, "tcp": tcp}
    return ways[request.param]


async def test_a_client_resumes_without_a_gap(connect: Connect, workspace: Path) -> None:
    gateway, peer = await connect()
    await peer.initialize(**SEQ)
    session = await peer.new_session(workspace)
    turn = asyncio.ensure_future(peer.start_prompt(session, SCRIPT))
    seen = await peer.next_message(lambda m: is_update(session)(m) and seq_of(m) > 500)
    await gateway.kill()
    turn.cancel()
    had = peer.received[: peer.received.index(seen) + 1]

    _, peer = await connect()
    await peer.initialize(**SEQ)
    resume = {
        "sessionId": session,
        "cwd": str(workspace),
        "_meta": {"dragoman": {"afterSeq": seq_of(seen)}},
    }
    facts = (await peer.request("session/resume", resume))["_meta"]["dragoman"]
    assert facts["seq"] >= seq_of(seen)
    await peer.next_message(is_interrupted)
    assert (await peer.prompt(session, "say back")).stop_reason == "end_turn"
    counted = numbers([*had, *peer.received])
    assert counted == list(range(len(counted)))


@pytest.mark.rule("G-125")
async def test_an_http_client_comes_back_with_its_last_event_id(serve: Serve, workspace: Path) -> None:
    first = await serve()
    peer = StreamableClient(first.http())
    await peer.initialize()
    session = await peer.new_session(workspace, await peer.listen())
    updates = await peer.listen(session)
    await peer.prompt(session, SCRIPT)
    seen = await updates.next(lambda m: is_update(session)(m) and text_of(m["params"]["update"]) != "")
    await first.gateway.kill()
    had = [event.message for event in updates.events[: updates.events.index(seen) + 1]]

    again = StreamableClient((await serve()).http())
    again.connection = peer.connection
    lost = await again.client.get("/acp", headers=again.headers(session, Accept="text/event-stream"))
    assert lost.status_code == 404
    again.connection = ""
    await again.initialize()
    updates = await again.listen(session, last_id=seen.id)
    resume = await again.ask("session/resume", {"sessionId": session, "cwd": str(workspace)}, session)
    assert "result" in await updates.response_to(resume)
    await updates.next(is_interrupted)
    counted = numbers([*had, *(event.message for event in updates.events)])
    assert counted == list(range(len(counted)))
    await again.prompt(session, "say back")
    await updates.text("back")
    await again.close()
    await peer.close()


@pytest.mark.rule("G-131")
async def test_a_client_with_one_stream_is_told_that_its_cursor_is_gone_and_resumes(
    serve: Serve, workspace: Path
) -> None:
    first = await serve()
    client, query = first.http(), {"client_id": "me"}

    async def ask(id: int, method: str, params: Message) -> None:
        body = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        assert (await client.post("/acp/rpc", params=query, json=body)).status_code == 202

    async def listen(last_id: str | None = None) -> Stream:
        headers = {"Last-Event-ID": last_id} if last_id else {}
        request = client.build_request("GET", "/acp/sse", params=query, headers=headers, timeout=None)
        stream = Stream(await client.send(request, stream=True))
        stream.task = asyncio.create_task(stream.pump())
        return stream

    await ask(1, "initialize", {"protocolVersion": 1, **SEQ})
    events = await listen()
    await ask(2, "session/new", {"cwd": str(workspace), "mcpServers": []})
    session = (await events.response_to(2))["result"]["sessionId"]
    await ask(3, "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": SCRIPT}]})
    seen = await events.next(lambda m: is_update(session)(m) and seq_of(m) > 500)
    await first.gateway.kill()
    had = [event.message for event in events.events[: events.events.index(seen) + 1]]

    client = (await serve()).http()
    for id in range(100, 103):  # answers that an old cursor must not skip
        await ask(id, "session/list", {})
    for last_id in (seen.id or "", (events.events[0].id or "")):
        refused = await client.get("/acp/sse", params=query, headers={"Last-Event-ID": last_id})
        assert refused.status_code == 410
    await ask(1, "initialize", {"protocolVersion": 1, **SEQ})
    events = await listen()
    after = {"_meta": {"dragoman": {"afterSeq": seq_of(seen.message)}}}
    await ask(2, "session/resume", {"sessionId": session, "cwd": str(workspace), **after})
    assert "result" in await events.response_to(2)
    await events.next(is_interrupted)
    counted = numbers([*had, *(event.message for event in events.events)])
    assert counted == list(range(len(counted)))
    await events.leave()


def seq_of(message: Message) -> int:
    return int(message["params"].get("_meta", {}).get("dragoman", {}).get("seq", 0))


def is_interrupted(message: Any) -> bool:
    """The event that says how the turn ended."""
    if not is_update(kind="session_info_update")(message):
        return False
    meta = message["params"]["update"].get("_meta", {})
    return bool(meta.get("dragoman", {}).get("state") == "interrupted")


def numbers(messages: list[Message]) -> list[int]:
    """The numbers that a flood counted."""
    texts = (text_of(message["params"]["update"]) for message in messages if is_update()(message))
    return [int(text.split()[0]) for text in texts if text[:1].isdigit()]
