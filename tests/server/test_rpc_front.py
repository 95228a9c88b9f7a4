"""POST `/acp/rpc` and GET `/acp/sse`: one stream for everything."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from support.clients.streamable_client import Stream
from support.rpc_peer import Message, is_request
from support.serve_process import ServeProcess

pytestmark = pytest.mark.rule("G-131")


class Front:
    def __init__(self, serving: ServeProcess, name: str = "me") -> None:
        self.client = serving.http()
        self.query = {"client_id": name}

    async def post(self, message: Any, **more: Any) -> int:
        answer = await self.client.post("/acp/rpc", params=self.query, json=message, **more)
        return answer.status_code

    async def ask(self, id: int, method: str, params: Message) -> None:
        assert await self.post({"jsonrpc": "2.0", "id": id, "method": method, "params": params}) == 202

    async def listen(self, **headers: str) -> Stream:
        request = self.client.build_request(
            "GET", "/acp/sse", params=self.query, headers=headers, timeout=None
        )
        stream = Stream(await self.client.send(request, stream=True))
        stream.task = asyncio.create_task(stream.pump())
        return stream


async def test_a_whole_conversation_comes_back_on_one_stream(serving: ServeProcess, workspace: Path) -> None:
    front = Front(serving)
    await front.ask(1, "initialize", {"protocolVersion": 1})
    events = await front.listen()
    assert "result" in await events.response_to(1)
    await front.ask(2, "session/new", {"cwd": str(workspace), "mcpServers": []})
    session = (await events.response_to(2))["result"]["sessionId"]
    text = [{"type": "text", "text": "say one\npermission\nsay two"}]
    await front.ask(3, "session/prompt", {"sessionId": session, "prompt": text})
    question = await events.next(is_request("session/request_permission"))
    await events.leave()

    option = question.message["params"]["options"][0]["optionId"]
    outcome = {"outcome": {"outcome": "selected", "optionId": option}}
    await front.post({"jsonrpc": "2.0", "id": question.message["id"], "result": outcome})
    events = await front.listen(**{"Last-Event-ID": question.id or ""})
    assert (await events.response_to(3))["result"]["stopReason"] == "end_turn"
    assert "one" not in events.texts and "two" in events.texts
    await events.leave()


async def test_what_is_wrong_has_a_status(serving: ServeProcess) -> None:
    front = Front(serving)
    rows = [
        (await front.client.post("/acp/rpc", json={}), 400),
        (await front.client.get("/acp/sse"), 400),
        (await front.client.get("/acp/rpc", params=front.query), 405),
        (await front.client.post("/acp/rpc", params=front.query, content=b"{x"), 415),
        (
            await front.client.post(
                "/acp/rpc", params=front.query, content=b"{x", headers={"Content-Type": "application/json"}
            ),
            400,
        ),
        (
            await front.client.get(
                "/acp/sse", params=front.query, headers={"Last-Event-ID": "99.7-00000000"}
            ),
            410,
        ),
        (await serving.http(token=False).post("/acp/rpc", params=front.query, json={}), 401),
    ]
    assert [answer.status_code for answer, _ in rows] == [status for _, status in rows]


async def test_clients_do_not_see_each_other(serving: ServeProcess) -> None:
    one, two = Front(serving, "one"), Front(serving, "two")
    await one.ask(1, "initialize", {"protocolVersion": 1})
    await two.ask(1, "initialize", {"protocolVersion": 1})
    events = await one.listen()
    await events.response_to(1)
    await two.ask(2, "session/list", {})
    await one.ask(3, "session/list", {})
    assert "result" in await events.response_to(3)
    assert [event.message["id"] for event in events.events] == [1, 3]
    await events.leave()
