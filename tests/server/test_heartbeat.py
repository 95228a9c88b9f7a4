"""Signs of life: what keeps proxies from cutting idle connections, and what tells a dead peer from a quiet one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.http_peer import HttpPeer
from support.rpc_peer import is_request
from support.serving import Socket

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
    turn.cancel()  # type: ignore[attr-defined]
    back = await serving.socket()
    await back.initialize()
    back.start_request("session/resume", {"sessionId": session, "cwd": str(workspace)})
    question = await back.next_message(is_request("session/request_permission"))
    back.reply(question, {"outcome": {"outcome": "selected", "optionId": "yes"}})
    await back.text(session, "done")


@pytest.mark.rule("G-125")
async def test_an_idle_event_stream_has_comments(serve: Serve, workspace: Path) -> None:
    serving = await serve(serve=QUICK)
    peer = HttpPeer(serving.http())
    await peer.initialize()
    events = await peer.listen()
    await peer.new_session(workspace, events)
    await events.commented(4)
    await peer.close()


async def answered(socket: Socket, pings: int) -> None:
    """Answer that many pings, as every WebSocket library does."""
    for number in range(1, pings + 1):
        await socket.framing.pinged(number)
        socket.send_bytes(socket.framing.frame(b"", opcode=10))
