"""Connections that look alive and are not, and those that nobody wants any more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dragoman.agents.remote import event_reader
from dragoman.agents.remote.address import Address
from dragoman.agents.remote.agent import RemoteAgent
from dragoman.agents.remote.event_reader import EventReader
from dragoman.agents.remote.streamable import http_client
from dragoman.rpc.link import Link, LinkHandler
from support.clients.link_recorder import LinkRecorder
from support.clients.memory_link import MemoryLink
from support.rpc_peer import PATIENCE
from support.waiting import until

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


@asynccontextmanager
async def saying(words: bytes) -> AsyncIterator[tuple[int, list[asyncio.StreamWriter]]]:
    """A server that says this to everybody, and then nothing."""
    open_now: list[asyncio.StreamWriter] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_now.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(words)
        await reader.read()
        open_now.remove(writer)
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], open_now
    finally:
        server.close()
        for writer in open_now:
            writer.transport.abort()


@pytest.mark.rule("G-125")
async def test_a_stream_that_falls_silent_after_comments_is_half_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_reader, "SILENCE", 0.2)
    heard: list[bytes] = []
    flowing = asyncio.Event()
    flowing.set()
    async with saying(HEAD + b": open\n\ndata: {}\n\n") as (port, _):
        address = Address.of(f"http://127.0.0.1:{port}/acp")
        async with http_client(address, {}, None) as client:
            reader = EventReader(address, client, {}, 1000, heard.extend, flowing)
            async with asyncio.timeout(PATIENCE):
                trouble = await reader.run()
    assert ("silent for 0.2 s" in str(trouble), trouble.lasting, heard) == (True, False, [b"{}"])


async def test_a_stream_without_comments_may_be_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_reader, "SILENCE", 0.01)
    heard: list[bytes] = []
    flowing = asyncio.Event()
    flowing.set()
    async with saying(HEAD + b"data: 1\n\n") as (port, open_now):
        address = Address.of(f"http://127.0.0.1:{port}/acp")
        async with http_client(address, {}, None) as client:
            running = asyncio.create_task(EventReader(address, client, {}, 1000, heard.extend, flowing).run())
            await until(lambda: heard)
            open_now[0].write(b"data: 2\n\n")
            await until(lambda: len(heard) == 2)
            running.cancel()


class Line(MemoryLink):
    """A link in memory that tells its handler when it is closed."""

    def __init__(self, handler: LinkHandler) -> None:
        super().__init__()
        self.handler = handler

    def close(self) -> None:
        super().close()
        asyncio.get_running_loop().call_soon(self.handler.link_closed, None)


async def test_an_agent_that_is_left_while_it_comes_back_leaves_no_connection() -> None:
    lines: list[Line] = []
    let_go = asyncio.Event()

    async def connect(handler: LinkHandler) -> Link:
        lines.append(Line(handler))
        return lines[-1]

    async def last() -> None:
        assert all(line.closed for line in lines[1:]), "what all connections share goes last"
        let_go.set()

    gateway = LinkRecorder()
    agent = RemoteAgent("far", "far", gateway, connect, {}, last)
    await agent.connect()
    agent.send(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}')
    facts = {"protocolVersion": 1, "_meta": {"dragoman": {"version": "1"}}}
    answer = {"jsonrpc": "2.0", "id": 1, "result": facts}
    lines[0].handler.link_messages([json.dumps(answer).encode()])
    await gateway.message()
    lines[0].handler.link_closed("lost")
    await until(lambda: len(lines) == 2 and lines[1].sent)  # it has said hello, and is not answered
    await agent.stop()
    assert lines[1].closed
    async with asyncio.timeout(PATIENCE):
        await let_go.wait()
    assert len(gateway.closings) == 1
