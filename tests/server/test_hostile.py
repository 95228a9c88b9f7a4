"""Connections that mean no good, or are merely broken: a status or a close, and nobody else notices."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from support.clients.streamable_client import StreamableClient
from support.rpc_peer import PATIENCE
from support.serve_process import ServeProcess, read_head
from support.waiting import until

from .conftest import Serve, works


async def test_headers_without_end_are_431(serving: ServeProcess) -> None:
    reader, writer = await serving.open()
    writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 40_000)
    assert (await read_head(reader))[0] == 431
    writer.close()


@pytest.mark.parametrize(
    "bad",
    [
        b"\r\n\r\n\r\n\r\n",
        b"GET /acp HTTP/1.1\r\nHost: a\r\nHost: b\r\nUpgrade: websocket\r\n\r\n",
        b"NONSENSE\r\n\r\n",
        b"POST /acp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -5\r\n\r\n",
        b"POST /acp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX\x00Y: 1\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    ],
)
async def test_what_is_no_request_is_400(serving: ServeProcess, bad: bytes) -> None:
    reader, writer = await serving.open()
    writer.write(bad)
    assert (await read_head(reader))[0] == 400
    writer.close()


async def test_connections_that_say_nothing_are_ended_and_cost_nobody_anything(
    serving: ServeProcess, workspace: Path
) -> None:
    silent = [await serving.open() for _ in range(150)]
    for number, (_, writer) in enumerate(silent):
        writer.write((b"", b"G", b"PRI * HT", b"GET / HTTP/1.1\r\nHost:")[number % 4])
    await works(serving, workspace)
    async with asyncio.timeout(PATIENCE):
        for reader, writer in silent:
            assert (await read_head(reader))[0] == 408
            writer.close()


async def test_tls_offers_http_2_and_websocket(
    serve: Serve, workspace: Path, certificate: tuple[Path, Path]
) -> None:
    cert, key = certificate
    serving = await serve(serve={"tls_cert": str(cert), "tls_key": str(key)})
    assert serving.url.startswith("https://")
    context = ssl.create_default_context(cafile=str(cert))
    client = serving.http(http2=True, verify=context)
    answer = await client.get("/readyz")
    assert (answer.status_code, answer.http_version) == (200, "HTTP/2")
    await works(serving, workspace, context)


@pytest.mark.parametrize("kind", ["websocket", "HTTP/2"])
async def test_a_reader_that_stalls_is_not_buffered_for(
    serving: ServeProcess, workspace: Path, kind: str
) -> None:
    before = serving.resident
    done = workspace / "done"
    script = f"flood 40000 1000\ntouch {done}"
    if kind == "websocket":
        socket = await serving.socket()
        await socket.initialize()
        session = await socket.new_session(workspace)
        socket.pause()
        turn = socket.start_prompt(session, script)
    else:
        peer = StreamableClient(serving.http(http1=False, http2=True))
        await peer.initialize()
        events = await peer.listen()
        session = await peer.new_session(workspace, events)
        updates = await peer.listen(session)
        assert updates.task is not None
        updates.task.cancel()  # httpx takes no more, and HTTP/2 flow control stops the stream
        await peer.prompt(session, script)
    await until(done.exists, 3 * PATIENCE)
    await works(serving, workspace)
    assert serving.resident - before < 60 * 1024 * 1024
    if kind == "websocket":
        socket.resume()
        assert len((await turn).updates) == 40000
