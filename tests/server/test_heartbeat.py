"""Signs of life: what keeps proxies from cutting idle connections, and what tells a dead peer from a quiet one."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path

import pytest

from support.clients.streamable_client import StreamableClient
from support.rpc_peer import PATIENCE, is_request
from support.serve_process import Socket

from .conftest import Serve

QUICK = {"ping_interval": 0.5, "keep_alive": 0.1}


@pytest.mark.rule("G-128")
async def test_an_idle_websocket_is_pinged_and_stays_open(serve: Serve) -> None:
    serving = await serve(serve=QUICK)
    socket = await serving.socket()
    await socket.initialize()
    await answered(socket, pings=4)  # longer than a silent peer would last
    assert "sessions" in await socket.request("session/list", {})


@pytest.mark.rule("G-128")
async def test_a_half_open_websocket_is_noticed_and_its_turn_goes_on(serve: Serve, workspace: Path) -> None:
    serving = await serve(serve=QUICK)
    gone = await serving.socket()
    alive = asyncio.create_task(answered(gone, pings=1000))
    await gone.initialize()
    session = await gone.new_session(workspace)
    turn = gone.start_prompt(session, "permission\nsay done")
    await gone.next_message(is_request("session/request_permission"))
    alive.cancel()
    await gone.ended()  # pings came and were not answered
    turn.cancel()
    back = await serving.socket()
    await back.initialize()
    back.start_request("session/resume", {"sessionId": session, "cwd": str(workspace)})
    question = await back.next_message(is_request("session/request_permission"))
    back.reply(question, {"outcome": {"outcome": "selected", "optionId": "yes"}})
    await back.text(session, "done")


@pytest.mark.rule("G-125")
async def test_an_idle_event_stream_has_comments(serve: Serve, workspace: Path) -> None:
    serving = await serve(serve=QUICK)
    peer = StreamableClient(serving.http())
    await peer.initialize()
    events = await peer.listen()
    await peer.new_session(workspace, events)
    await events.commented(4)
    await peer.close()


@pytest.mark.skipif(sys.platform != "linux", reason="TCP_USER_TIMEOUT")
async def test_a_reader_of_events_that_takes_nothing_is_noticed(serve: Serve, workspace: Path) -> None:
    serving = await serve(serve=QUICK)
    peer = StreamableClient(serving.http())
    await peer.initialize()
    session = await peer.new_session(workspace, await peer.listen())
    with socket.socket() as dead:
        dead.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        dead.connect(("127.0.0.1", serving.port))
        named = peer.headers(session, Accept="text/event-stream", Host="127.0.0.1", **serving.bearer)
        lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        dead.sendall(f"GET /acp HTTP/1.1\r\n{lines}\r\n".encode())
        assert dead.recv(12) == b"HTTP/1.1 200"
        await peer.prompt(session, "flood 20000 500\nsay the end")
        async with asyncio.timeout(PATIENCE):
            while await is_occupied(peer, session):
                await asyncio.sleep(0.05)  # nothing tells us that the server let go
    await peer.close()


async def is_occupied(peer: StreamableClient, session: str) -> bool:
    headers = peer.headers(session, Accept="text/event-stream")
    async with peer.client.stream("GET", peer.path, headers=headers) as response:
        return response.status_code == 409


async def answered(socket: Socket, pings: int) -> None:
    """Answer that many pings, as every WebSocket library does."""
    for number in range(1, pings + 1):
        await socket.framing.pinged(number)
        socket.send_bytes(socket.framing.frame(b"", opcode=10))
