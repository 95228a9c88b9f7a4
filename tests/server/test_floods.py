"""Floods of frames that cost their sender next to nothing: others are served meanwhile.

How fast, and of many more kinds, is measured in `soak/test_floods.py`; here a machine may be busy with other things.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.clients import http2_websocket
from support.clients.flood import flooded, probe
from support.clients.flood_program import ws_frame
from support.serve_process import ServeProcess

from .conftest import works

ANSWERED_WITHIN = 2.0
"""Seconds. Before frames were read some at a time, most of these floods stopped the server for 3 to 19 s."""

KINDS = [
    "websocket: pongs",
    "websocket: empty continuations",
    "websocket: one-byte texts",
    "websocket after a request: binaries",
    "websocket in HTTP/2: pings",
    "HTTP/2: settings",
    "HTTP/2: pings",
    "HTTP/2: unknown frames",
    "HTTP/2: requests",
    "HTTP/1: chunks",
    "HTTP/1: pipelined requests",
]


async def test_floods_do_not_stop_the_server(serving: ServeProcess, workspace: Path) -> None:
    slowest = {}
    for kind in KINDS:
        async with flooded(serving, kind):
            slowest[kind] = max([await asyncio.to_thread(probe, serving.port) for _ in range(5)])
    assert {kind: taken for kind, taken in slowest.items() if taken > ANSWERED_WITHIN} == {}
    await works(serving, workspace)
    assert "Traceback" not in serving.gateway.stderr


async def test_a_conversation_goes_on_beside_a_flood(serving: ServeProcess, workspace: Path) -> None:
    async with (
        flooded(serving, "websocket: pings", connections=5),
        flooded(serving, "HTTP/2: settings", connections=5),
    ):
        await works(serving, workspace)


@pytest.mark.parametrize("way", ["HTTP/2", "HTTP/1.1, after a request"])
async def test_too_many_pings_close_a_socket_whose_connection_others_may_share(
    serving: ServeProcess, way: str
) -> None:
    if way == "HTTP/2":
        socket = await http2_websocket.open_socket(serving)
    else:
        socket = await serving.socket(after_request=True)
    await socket.initialize()
    for _ in range(11):
        socket.send_bytes(ws_frame(9) * 100)
        await asyncio.sleep(0)
    assert await socket.closed() == 1008
    assert (await serving.http().get("/readyz")).status_code == 200
    assert "Traceback" not in serving.gateway.stderr
