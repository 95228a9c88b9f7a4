"""Connections that ask nothing are closed, whatever they speak."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from pathlib import Path

import pytest

from support.clients import http2_websocket
from support.clients.flood_program import GET, PREFACE, frame
from support.rpc_peer import PATIENCE
from support.serve_process import ServeProcess, read_head

from .conftest import Serve, limited

SETTINGS = frame(4, 0, 0)
REQUEST = frame(1, 5, 1, GET.replace(b"\x84", b"\x04\x08/healthz"))
GOAWAY = 7

HTTP_2 = {
    "the first line": PREFACE[:18],
    "a preface": PREFACE,
    "settings": PREFACE + SETTINGS,
    "a ping": PREFACE + SETTINGS + frame(6, 0, 0, bytes(8)),
    "half a frame": PREFACE + SETTINGS + b"\x00\x00",
    "half the headers": PREFACE + SETTINGS + frame(1, 1, 1, GET),
    "a priority": PREFACE + SETTINGS + frame(2, 0, 1, bytes(5)),
    "one request": PREFACE + SETTINGS + REQUEST,
    "a request that is taken back": PREFACE + SETTINGS + frame(1, 4, 1, GET) + frame(3, 0, 1, bytes(4)),
    "a request that cannot be read": PREFACE
    + SETTINGS
    + frame(1, 5, 1, GET.replace(b"\x84", b"\x04\x02/\xff")),
}


async def ended(reader: asyncio.StreamReader) -> bytes:
    """What came until the connection was closed."""
    async with asyncio.timeout(PATIENCE):
        with contextlib.suppress(ConnectionError):
            return await reader.read()
        return b""


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
async def test_an_http_2_connection_that_asks_nothing_more_is_closed(
    serve: Serve, certificate: tuple[Path, Path], secure: bool
) -> None:
    cert, key = certificate
    serving = await serve(
        serve={"tls_cert": str(cert), "tls_key": str(key)} if secure else {},
        prefix=limited(KEEP_ALIVE=0.5, HEAD_TIMEOUT=5),
    )
    context = ssl.create_default_context(cafile=str(cert)) if secure else None
    if context is not None:
        context.set_alpn_protocols(["h2"])
    opened = {name: (await serving.open(context), said) for name, said in HTTP_2.items()}
    for (_, writer), said in opened.values():
        writer.write(said)
    for name, ((reader, writer), said) in opened.items():
        heard = await ended(reader)
        if len(said) > len(PREFACE):
            assert bytes((0, 0, 8, GOAWAY)) in heard, f"{name}: it is told"
        writer.close()
    assert "Traceback" not in serving.gateway.stderr


async def test_a_connection_that_has_asked_nothing_yet_is_not_kept_as_long(serve: Serve) -> None:
    serving = await serve(prefix=limited(KEEP_ALIVE=3600, HEAD_TIMEOUT=0.5))
    reader, writer = await serving.open()
    writer.write(PREFACE + SETTINGS)
    assert bytes((0, 0, 8, GOAWAY)) in await ended(reader)
    writer.close()


async def test_half_a_later_request_is_not_waited_for(serve: Serve) -> None:
    serving = await serve(prefix=limited(KEEP_ALIVE=0.5))
    for half in (b"", b"G", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "):
        reader, writer = await serving.open()
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" + half)
        assert (await read_head(reader))[0] == 200
        assert await ended(reader) == b"ok\n"
        writer.close()


async def test_an_open_stream_is_not_idle(serve: Serve) -> None:
    serving = await serve(serve={"keep_alive": 0.2}, prefix=limited(KEEP_ALIVE=0.3, HEAD_TIMEOUT=0.3))
    async with serving.http(http1=False, http2=True).stream("GET", "/acp/sse?client_id=me") as stream:
        assert (stream.status_code, stream.http_version) == (200, "HTTP/2")
        comments = 0
        async with asyncio.timeout(PATIENCE):
            async for line in stream.aiter_lines():
                comments += line.startswith(":")
                if comments == 5:
                    break


@pytest.mark.parametrize("way", ["HTTP/2", "HTTP/1.1, after a request"])
async def test_a_websocket_that_answers_no_ping_is_closed_there_too(serve: Serve, way: str) -> None:
    serving = await serve(serve={"ping_interval": 0.2})
    if way == "HTTP/2":
        socket = await http2_websocket.open_socket(serving)
    else:
        socket = await serving.socket(after_request=True)
    await socket.ended()
    await serving.gateway.logged("websocket peer is silent")
    await until_served(serving)


async def until_served(serving: ServeProcess) -> None:
    assert (await serving.http().get("/readyz")).status_code == 200
