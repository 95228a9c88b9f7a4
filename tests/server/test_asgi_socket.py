"""WebSockets inside HTTP/2 (RFC 8441), and on connections that carried requests before."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from dragoman.server import limits
from dragoman.server.fronts.asgi_socket import AsgiSocket
from dragoman.server.fronts.fronts import Speaker
from support.clients import http2_websocket
from support.clients.link_recorder import LinkRecorder
from support.rpc_peer import PATIENCE, is_request
from support.serve_process import Refused, ServeProcess, Socket, WebSocketFraming
from support.waiting import until

from .conftest import Serve

pytestmark = pytest.mark.rule("G-126", "G-128")

Open = Callable[..., Awaitable[Socket]]


@pytest.fixture(params=["HTTP/1.1", "HTTP/2"])
def open_socket(serving: ServeProcess, request: pytest.FixtureRequest) -> Open:
    async def start(path: str = "/acp", **headers: str) -> Socket:
        if request.param == "HTTP/2":
            return await http2_websocket.open_socket(serving, path, **headers)
        given = {**serving.bearer, **{name.title(): value for name, value in headers.items()}}
        return await serving.socket(path, given, after_request=True)

    return start


async def test_a_whole_conversation_with_a_question_and_a_cancel(open_socket: Open, workspace: Path) -> None:
    socket = await open_socket()
    assert len(socket.handshake["acp-connection-id"]) >= 20
    assert "sec-websocket-extensions" not in socket.handshake  # no compression
    await socket.initialize()
    session = await socket.new_session(workspace)
    turn = await socket.prompt(session, "flood 3000 200")
    assert [text.split()[0] for text in turn.texts] == [str(number) for number in range(3000)]
    turns = socket.start_prompt(session, "permission")
    question = await socket.next_message(is_request("session/request_permission"))
    option = question["params"]["options"][0]["optionId"]
    socket.reply(question, {"outcome": {"outcome": "selected", "optionId": option}})
    assert (await turns).stop_reason == "end_turn"
    turns = socket.start_prompt(session, "say here\nsleep-until-cancel")
    await socket.text(session, "here")
    socket.cancel(session)
    assert (await turns).stop_reason == "cancelled"


async def test_a_message_longer_than_the_backlog_may_be_arrives(open_socket: Open, workspace: Path) -> None:
    socket = await open_socket()
    await socket.initialize()
    session = await socket.new_session(workspace)
    size = limits.MAX_SOCKET_BACKLOG + 100_000
    turn = asyncio.ensure_future(socket.start_prompt(session, f"big {size}\nsay after"))
    ping = socket.framing.frame(b"there?", opcode=9)
    listed = [socket.request("session/list", {}) for _ in range(20)]  # asked while it is on its way
    while not turn.done():  # also while the peer has no room for an answer
        socket.send_bytes(ping)
        await asyncio.wait([turn], timeout=0.02)
    done = await turn
    assert [len(text) for text in done.texts] == [size, len("after")]
    assert all("sessions" in each for each in await asyncio.gather(*listed))


async def test_who_asks_without_end_and_reads_nothing_is_closed() -> None:
    events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    sent: list[Mapping[str, Any]] = []
    reads = asyncio.Event()

    async def send(event: Mapping[str, Any]) -> None:
        if event["type"] == "websocket.send":
            await reads.wait()
        sent.append(event)

    heard = LinkRecorder()
    socket = AsgiSocket(Speaker(heard, False), events.get, send, restarting=lambda: False)
    running = asyncio.create_task(socket.run(("x-cookie", "none")))
    events.put_nowait({"type": "websocket.receive", "text": '{"first":1}'})
    await heard.message(0)
    socket.send(b"x" * (limits.MAX_SOCKET_BACKLOG + 1))
    question = {"type": "websocket.receive", "text": json.dumps({"asked": "x" * 1024 * 1024})}
    for _ in range(8):
        events.put_nowait(question)
    await until(events.empty)
    assert len(heard.frames) == 1, "held back until it has read"
    reads.set()
    await heard.message(8)
    reads.clear()
    socket.send(b"x" * (limits.MAX_SOCKET_BACKLOG + 1))
    for _ in range(10):
        events.put_nowait(question)
    await until(events.empty)
    reads.set()
    async with asyncio.timeout(PATIENCE):
        await running
    assert len(heard.frames) == 9
    assert sent[-1] == {"type": "websocket.close", "code": 1013, "reason": "read what you asked for"}


async def test_the_bridge_can_be_reached_too(open_socket: Open) -> None:
    socket = await open_socket("/bridge")
    socket.send({"type": "list_sessions"})
    assert (await socket.next_message(lambda m: m.get("type") == "session_list"))["sessions"] == []


async def test_strangers_are_refused_with_a_status(open_socket: Open) -> None:
    rows = [
        ("/acp", {"authorization": "Bearer wrong"}, 401),
        ("/acp", {"origin": "http://evil.example"}, 403),
        ("/acp", {"host": "evil.example"}, 403),
        ("/acp/nobody", {}, 404),
        ("/healthz", {}, 404),
    ]
    for path, headers, status in rows:
        with pytest.raises(Refused) as refused:
            await open_socket(path, **headers)
        assert refused.value.status == status, path


async def test_noise_is_answered_and_a_wrong_beginning_is_closed(open_socket: Open) -> None:
    socket = await open_socket()
    framing = socket.framing
    assert isinstance(framing, WebSocketFraming)
    socket.send_bytes(framing.frame(b"\x00\x01", opcode=2))  # binary is ignored
    socket.send_bytes(framing.frame(b"{nonsense"))
    assert (await socket.next_message(lambda m: "error" in m))["error"]["code"] == -32700
    socket.notify("session/cancel", {})
    assert await socket.closed() == 1002


async def test_a_message_that_is_too_long_ends_the_socket(serve: Serve) -> None:
    serving = await serve(limits={"max_message_bytes": 2048})
    socket = await serving.socket(after_request=True)
    socket.notify("x", {"padding": "x" * 5000})
    assert await socket.closed() == 1009


async def test_a_shutdown_is_told(open_socket: Open, serving: ServeProcess) -> None:
    socket = await open_socket()
    await socket.initialize()
    serving.gateway.process.send_signal(signal.SIGTERM)
    assert await socket.closed() == 1012
    assert await serving.gateway.wait_exit() == 0
