"""SIGTERM while everything is busy: everybody is told, nothing is left, and it does not take long."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path
from typing import Unpack

import httpx
import pytest

from support.clients import http2_websocket
from support.clients.streamable_client import Stream, StreamableClient
from support.gateway_process import agent
from support.rpc_peer import PATIENCE
from support.serve_process import HttpVersion, ServeProcess, Socket, read_head

from .conftest import Serve

AGENTS = {"stubborn": agent("--ignore-term", "--ignore-eof", "--no-cancel-answer"), "busy": agent()}
"""The first one takes no hint, only SIGKILL ends it; the other one never stops talking."""
MOST = 10.0


async def open_stream(client: httpx.AsyncClient, request: httpx.Request) -> Stream:
    response = await client.send(request, stream=True)
    assert response.status_code == 200, await response.aread()
    stream = Stream(response)
    stream.task = asyncio.create_task(stream.pump())
    return stream


async def working_socket(socket: Socket, workspace: Path) -> None:
    await socket.initialize()
    session = await socket.new_session(workspace)
    socket.start_request("session/prompt", {"sessionId": session, "prompt": text("ignore-cancel here")})
    await socket.text(session, "here")


def text(script: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": script}]


async def streamable(serving: ServeProcess, workspace: Path, **version: Unpack[HttpVersion]) -> list[Stream]:
    peer = StreamableClient(serving.http(**version))
    await peer.initialize()
    events = await peer.listen()
    session = await peer.new_session(workspace, events)
    updates = await peer.listen(session)
    await peer.prompt(session, "say here\nhang")
    await updates.text("here")
    return [events, updates]


async def inline(serving: ServeProcess, workspace: Path, **version: Unpack[HttpVersion]) -> list[Stream]:
    client = serving.http(**version)
    made = await client.post("/api/sessions", json={"cwd": str(workspace), "agent": "busy"})
    assert made.status_code == 201, made.text
    session = made.json()["id"]
    watch = client.build_request("GET", "/acp/events", params={"session": session}, timeout=None)
    events = await open_stream(client, watch)
    prompt = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "session/prompt",
        "params": {"sessionId": session, "prompt": text("say here\nsleep-until-cancel")},
    }
    answer = await open_stream(client, client.build_request("POST", "/acp/inline", json=prompt, timeout=None))
    await answer.text("here")
    return [events, answer]


async def one_stream(serving: ServeProcess, workspace: Path, **version: Unpack[HttpVersion]) -> list[Stream]:
    client = serving.http(**version)
    query = {"client_id": f"http2-{version['http2']}"}
    stream = await open_stream(client, client.build_request("GET", "/acp/sse", params=query, timeout=None))
    initialize = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
    assert (await client.post("/acp/rpc", params=query, json=initialize)).status_code == 202
    await stream.response_to(1)
    return [stream]


VERSIONS: tuple[HttpVersion, ...] = ({"http1": True, "http2": False}, {"http1": False, "http2": True})


@pytest.mark.rule("G-115")
async def test_every_stream_and_socket_ends_in_time_with_busy_agents(serve: Serve, workspace: Path) -> None:
    serving = await serve(agents=AGENTS, limits={"cancel_timeout": 30})
    kinds = (streamable, inline, one_stream)
    opened = await asyncio.gather(*(kind(serving, workspace, **each) for kind in kinds for each in VERSIONS))
    streams = [stream for each in opened for stream in each]
    rest = serving.http()
    place = (await rest.post("/api/sessions", json={"cwd": str(workspace), "agent": "busy"})).headers[
        "location"
    ]
    flooded = asyncio.create_task(rest.post(f"{place}/prompt", json={"prompt": "flood 10000000 200"}))
    sockets = [await serving.socket(), await http2_websocket.open_socket(serving)]
    await asyncio.gather(*(working_socket(socket, workspace) for socket in sockets))

    started = time.monotonic()
    serving.gateway.process.send_signal(signal.SIGTERM)
    assert [await socket.closed() for socket in sockets] == [1012, 1012]
    for stream in streams:
        assert stream.task is not None
        await asyncio.wait_for(stream.task, MOST)
        assert stream.failure is None, stream.response.request.url
    answers = [each.message for stream in streams for each in stream.events if each.message.get("error")]
    assert [each["error"]["data"]["reason"] for each in answers] == [
        "shutdown"
    ] * 4  # two prompts per version
    assert ((await flooded).status_code, (await flooded).json()["code"]) == (503, "shutdown")
    assert await serving.gateway.wait_exit() == 0
    assert time.monotonic() - started < MOST


Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def ask(serving: ServeProcess, connection: Connection, path: str, **headers: str) -> None:
    given = {"Host": f"127.0.0.1:{serving.port}", **serving.bearer, **headers}
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    connection[1].write("\r\n".join(lines).encode() + b"\r\n\r\n")


async def answer(connection: Connection) -> tuple[int, dict[str, str], bytes]:
    reader, _ = connection
    status, headers = await read_head(reader)
    async with asyncio.timeout(PATIENCE):
        return status, headers, await reader.readexactly(int(headers["content-length"]))


async def test_whoever_asked_before_the_end_is_answered(serve: Serve) -> None:
    serving = await serve()
    fresh = [await serving.open() for _ in range(3)]
    used = [await serving.open() for _ in range(3)]
    for each in used:
        ask(serving, each, "/api/agents")
        assert (await answer(each))[0] == 200
    process = serving.gateway.process
    process.send_signal(signal.SIGSTOP)  # it finds all of them together when it goes on
    waiting = [await serving.open() for _ in range(3)]  # accepted by the kernel alone
    for each in (*fresh, *used, *waiting):
        ask(serving, each, "/api/agents")
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    for each in (*fresh, *used, *waiting):
        assert (await answer(each))[0] in (200, 503)
    assert await serving.gateway.wait_exit() == 0


async def test_whoever_asks_while_the_gateway_ends_is_told_to_come_back(
    serve: Serve, workspace: Path
) -> None:
    serving = await serve(agents=AGENTS)
    paths = ("/api/sessions", "/acp/sse?client_id=late", "/", "/readyz")
    fresh = {path: await serving.open() for path in paths}
    handshakes = {path: await serving.open() for path in ("/bridge", "/acp")}
    silent = await serving.open()
    socket = await serving.socket()
    await working_socket(socket, workspace)  # its agent keeps the gateway from ending
    serving.gateway.process.send_signal(signal.SIGTERM)
    assert await socket.closed() == 1012
    for path, connection in fresh.items():
        ask(serving, connection, path)
    for path, connection in handshakes.items():
        key = {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
        ask(serving, connection, path, Upgrade="websocket", Connection="Upgrade", **key)
    for path, connection in {**fresh, **handshakes}.items():
        status, headers, body = await answer(connection)
        assert (status, headers["connection"]) == (503, "close"), path
        assert b"shutting down" in body
        assert await connection[0].read() == b""
    serving.gateway.end_agents()
    assert (await answer(silent))[0] == 503, "its request may be on the way"
    assert await serving.gateway.wait_exit() == 0
