"""Pretty-printed messages with any line ends, on every front: one line for the agent, one event for every reader."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from support.agents.agent_log import AgentLog
from support.clients.http2_websocket import open_socket
from support.clients.streamable_client import Stream, StreamableClient
from support.gateway_process import agent
from support.rpc_peer import Message, is_request, is_update
from support.serve_process import ServeProcess

from .conftest import Serve

JSON = {"Content-Type": "application/json"}
ENDS = {"CRLF": "\r\n", "CR": "\r", "LF": "\n"}
YES = {"outcome": {"outcome": "selected", "optionId": "yes"}}


def printed(message: Message, end: str) -> bytes:
    return (json.dumps({"jsonrpc": "2.0", **message}, indent=2).replace("\n", end) + end).encode()


def prompt(session: str, script: str) -> Message:
    return {"sessionId": session, "prompt": [{"type": "text", "text": script}], "_meta": {"mine": [1, 2]}}


class Readers:
    """Everybody who reads events of one session."""

    def __init__(self, serving: ServeProcess, session: str, workspace: Path) -> None:
        self.serving, self.session = serving, session
        self.setup = {"sessionId": session, "cwd": str(workspace), "mcpServers": []}
        self.streams: list[Stream] = []

    async def start(self) -> None:
        client = self.serving.http()
        await self._open(client, "/acp/events", {"session": self.session}, {})
        query = {"client_id": f"reader-{hash(self)}"}
        for id, method, params in (
            (1, "initialize", {"protocolVersion": 1}),
            (2, "session/load", self.setup),
        ):
            body = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
            assert (await client.post("/acp/rpc", params=query, json=body)).status_code == 202
        await (await self._open(client, "/acp/sse", query, {})).response_to(2)
        self.peer = StreamableClient(self.serving.http())
        await self.peer.initialize()
        events = await self.peer.listen()
        id = await self.peer.ask("session/load", self.setup)
        await events.response_to(id)
        self.streams.append(await self.peer.listen(self.session))

    async def _open(self, client: Any, path: str, query: Message, headers: Message) -> Stream:
        request = client.build_request("GET", path, params=query, headers=headers, timeout=None)
        stream = Stream(await client.send(request, stream=True))
        stream.task = asyncio.create_task(stream.pump())
        self.streams.append(stream)
        return stream

    async def all_see(self, text: str) -> None:
        for stream in self.streams:
            await stream.text(text)

    async def leave(self) -> None:
        for stream in (*self.streams, *self.peer.streams):
            await stream.leave()


Send = Callable[[ServeProcess, str, Path, str, str], Awaitable[None]]


async def by_websocket(serving: ServeProcess, session: str, workspace: Path, script: str, end: str) -> None:
    socket = await serving.socket()
    await speak(socket, session, workspace, script, end)


async def by_websocket_in_http2(
    serving: ServeProcess, session: str, workspace: Path, script: str, end: str
) -> None:
    socket = await open_socket(serving)
    await speak(socket, session, workspace, script, end)
    await socket.close()


async def speak(socket: Any, session: str, workspace: Path, script: str, end: str) -> None:
    await socket.initialize()
    setup = {"sessionId": session, "cwd": str(workspace), "mcpServers": []}
    socket.send(printed({"id": "r", "method": "session/resume", "params": setup}, end))
    await socket.response("r")
    socket.send(printed({"id": "p", "method": "session/prompt", "params": prompt(session, script)}, end))
    question = await socket.next_message(is_request("session/request_permission"))
    socket.send(printed({"id": question["id"], "result": YES}, end))
    assert (await socket.response("p"))["result"]["stopReason"] == "end_turn"


async def by_streamable(serving: ServeProcess, session: str, workspace: Path, script: str, end: str) -> None:
    peer = StreamableClient(serving.http())
    await peer.initialize()
    events = await peer.listen()
    setup = {"sessionId": session, "cwd": str(workspace), "mcpServers": []}
    await events.response_to(await peer.ask("session/resume", setup))
    stream = await peer.listen(session)
    headers = {**peer.headers(session), **JSON}
    body = printed({"id": "p", "method": "session/prompt", "params": prompt(session, script)}, end)
    assert (await peer.client.post("/acp", content=body, headers=headers)).status_code == 202
    question = (await stream.next(is_request("session/request_permission"))).message
    answer = printed({"id": question["id"], "result": YES}, end)
    assert (await peer.client.post("/acp", content=answer, headers=headers)).status_code == 202
    assert (await stream.response_to("p"))["result"]["stopReason"] == "end_turn"
    await peer.close()


async def by_rpc(serving: ServeProcess, session: str, workspace: Path, script: str, end: str) -> None:
    client, query = serving.http(), {"client_id": "writer"}

    async def post(body: bytes) -> None:
        answer = await client.post("/acp/rpc", params=query, content=body, headers=JSON)
        assert answer.status_code == 202, answer.text

    await post(printed({"id": 1, "method": "initialize", "params": {"protocolVersion": 1}}, end))
    request = client.build_request("GET", "/acp/sse", params=query, timeout=None)
    stream = Stream(await client.send(request, stream=True))
    stream.task = asyncio.create_task(stream.pump())
    setup = {"sessionId": session, "cwd": str(workspace), "mcpServers": []}
    await post(printed({"id": 2, "method": "session/resume", "params": setup}, end))
    await stream.response_to(2)
    await post(printed({"id": "p", "method": "session/prompt", "params": prompt(session, script)}, end))
    question = (await stream.next(is_request("session/request_permission"))).message
    await post(printed({"id": question["id"], "result": YES}, end))
    assert (await stream.response_to("p"))["result"]["stopReason"] == "end_turn"
    await stream.leave()


async def by_inline(serving: ServeProcess, session: str, workspace: Path, script: str, end: str) -> None:
    client = serving.http()
    told = {"method": "_mine/note", "params": {"sessionId": session, "a": {"b": 1}}}
    assert (await client.post("/acp/inline", content=printed(told, end), headers=JSON)).status_code == 202
    body = printed({"id": "p", "method": "session/prompt", "params": prompt(session, script)}, end)
    request = client.build_request("POST", "/acp/inline", content=body, headers=JSON, timeout=None)
    stream = Stream(await client.send(request, stream=True))
    stream.task = asyncio.create_task(stream.pump())
    question = (await stream.next(is_request("session/request_permission"))).message
    answer = printed({"id": question["id"], "result": YES}, end)
    assert (await client.post("/acp/inline", content=answer, headers=JSON)).status_code == 202
    assert (await stream.response_to("p"))["result"]["stopReason"] == "end_turn"
    await stream.leave()


FRONTS: dict[str, Send] = {
    "websocket": by_websocket,
    "websocket in http/2": by_websocket_in_http2,
    "streamable": by_streamable,
    "rpc": by_rpc,
    "inline": by_inline,
}


@pytest.mark.parametrize("front", FRONTS)
async def test_line_ends_inside_messages_reach_nobody(
    serve: Serve, workspace: Path, heard: AgentLog, front: str
) -> None:
    serving = await serve(agents={"scripted": agent(*heard.flags)})
    first = await serving.socket()
    await first.initialize()
    session = await first.new_session(workspace)
    readers = Readers(serving, session, workspace)
    await readers.start()
    for name, end in ENDS.items():
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": f"odd {name}"}}
        message = {"method": "session/update", "params": {"sessionId": "{sid}", "update": update}}
        odd = printed(message, "\r").decode()  # a line of the agent with carriage returns between its tokens
        await FRONTS[front](serving, session, workspace, f"raw {odd}\npermission\nsay done {name}", end)
        await readers.all_see(f"odd {name}")
        await readers.all_see(f"done {name}")
        await first.text(session, f"done {name}")
    await readers.leave()
    assert all(json.loads(line) for line in heard.lines)  # one message, one line
    assert not any(b"\r" in line for line in (*heard.lines, *first.raw))
    again = Readers(serving, session, workspace)
    await again.start()  # what is stored is shown again
    for stream in again.streams[1:]:
        await stream.text("odd CRLF")
    await again.leave()
    export = (await serving.http().get(f"/api/sessions/{session}/export")).content
    assert b"\r" not in export and all(json.loads(line) for line in export.splitlines())
    prompts = [update for update in first.of(session) if update["sessionUpdate"] == "user_message_chunk"]
    assert len(prompts) == len(ENDS)
    assert "not being saved" not in serving.gateway.stderr


async def test_an_agents_crlf_lines_are_whole_for_everybody(serving: ServeProcess, workspace: Path) -> None:
    socket = await serving.socket()
    await socket.initialize()
    session = await socket.new_session(workspace)
    line = (
        '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"{sid}","update":'
        '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"windows"}}}}\r'
    )
    turn = await socket.prompt(session, f"raw {line}")
    assert turn.texts == ["windows"]
    assert not any(b"\r" in raw for raw in socket.raw if is_update(session)(json.loads(raw)))
