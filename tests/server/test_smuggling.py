"""Requests whose end two programs could see in different places: 400, and nothing that follows is read."""

from __future__ import annotations

import asyncio
import re

from support.rpc_peer import PATIENCE
from support.serve_process import ServeProcess, read_head

HOST = b"Host: localhost\r\n"
NEXT = b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /healthz HTTP/1.1\r\n" + HOST
UPGRADE = (
    b"GET /acp HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
)

HEADS = {
    "length and chunked": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked and length": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nx",
    "the same length twice": POST + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\nx",
    "a list of lengths": POST + b"Content-Length: 1, 1\r\n\r\nx",
    "a length with a sign": POST + b"Content-Length: +1\r\n\r\nx",
    "a length below zero": POST + b"Content-Length: -1\r\n\r\nx",
    "a length with an underscore": POST + b"Content-Length: 1_0\r\n\r\nxxxxxxxxxx",
    "a length in hex": POST + b"Content-Length: 0x1\r\n\r\nx",
    "no length at all": POST + b"Content-Length:\r\n\r\nx",
    "two encodings": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked in HTTP/1.0": b"POST /healthz HTTP/1.0\r\n"
    + HOST
    + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "only line feeds": b"GET /healthz HTTP/1.1\nHost: localhost\n\n",
    "one bare line feed": b"GET /healthz HTTP/1.1\r\nHost: localhost\nX: y\r\n\r\n",
    "a bare line feed at the end": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\n",
    "a line feed after the first line": b"GET /healthz HTTP/1.1\nHost: localhost\r\n\r\n",
    "a bare return": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\rY: b\r\n\r\n",
    "folded with a space": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n",
    "folded with a tab": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\r\n\tb\r\n\r\n",
    "folded after the first line": b"GET /healthz HTTP/1.1\r\n X: a\r\nHost: localhost\r\n\r\n",
    "a space before the colon": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length : 0\r\n\r\n",
    "a tab before the colon": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX\t: y\r\n\r\n",
    "a header without a name": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n: y\r\n\r\n",
    "a header without a colon": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX\r\n\r\n",
    "two hosts": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
    "no host": b"GET /healthz HTTP/1.1\r\nX: y\r\n\r\n",
    "a NUL": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",
    "two spaces": b"GET  /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a tab in the first line": b"GET\t/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a space in the path": b"GET /health z HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "an upgrade with a body": UPGRADE + b"Content-Length: 5\r\n\r\nhello",
    "an upgrade with chunks": UPGRADE + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a folded upgrade": UPGRADE + b"X: a\r\n b\r\n\r\n",
    "an upgrade with a bare line feed": UPGRADE + b"X: a\nY: b\r\n\r\n",
    "a bare line feed hides an upgrade": b"GET /acp HTTP/1.1\r\nHost: localhost\r\nX: a\nUpgrade: websocket\r\n\r\n",
}
CHUNKS = {
    "a sign": b"+5\r\nhello\r\n0\r\n\r\n",
    "below zero": b"-5\r\nhello\r\n0\r\n\r\n",
    "an underscore": b"0_5\r\nhello\r\n0\r\n\r\n",
    "0x": b"0x5\r\nhello\r\n0\r\n\r\n",
    "a space before": b" 5\r\nhello\r\n0\r\n\r\n",
    "no size": b"\r\nhello\r\n0\r\n\r\n",
    "a size without end": b"0000000000000000000000005\r\nhello\r\n0\r\n\r\n",
    "a size that ends with a line feed": b"5\nhello\r\n0\r\n\r\n",
    "a chunk that ends with a line feed": b"5\r\nhello\n0\r\n\r\n",
    "a chunk that ends late": b"5\r\nhelloXX0\r\n\r\n",
    "a line feed in an extension": b"5;a\nb\r\nhello\r\n0\r\n\r\n",
    "a return in an extension": b"5;a\rb\r\nhello\r\n0\r\n\r\n",
    "an end with a line feed": b"5\r\nhello\r\n0\r\n\n",
    "a trailer with a line feed": b"5\r\nhello\r\n0\r\nX: y\n\r\n",
    "a folded trailer": b"5\r\nhello\r\n0\r\nX: y\r\n z\r\n\r\n",
}


async def answers(reader: asyncio.StreamReader) -> list[int]:
    """The statuses of all answers until the connection ends."""
    async with asyncio.timeout(PATIENCE):
        said = await reader.read()
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", said)]


async def test_a_head_that_can_be_read_in_two_ways_is_400_and_ends_the_connection(
    serving: ServeProcess,
) -> None:
    for name, head in HEADS.items():
        reader, writer = await serving.open()
        writer.write(head + NEXT)
        assert await answers(reader) == [400], name
        writer.close()


async def test_the_same_holds_for_later_requests_of_a_connection(serving: ServeProcess) -> None:
    for name, head in HEADS.items():
        reader, writer = await serving.open()
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        status, headers = await read_head(reader)
        await reader.readexactly(int(headers["content-length"]))
        writer.write(head + NEXT)
        assert (status, await answers(reader)) == (200, [400]), name
        writer.close()


async def test_and_when_it_comes_byte_by_byte(serving: ServeProcess) -> None:
    for name in ("only line feeds", "length and chunked", "folded with a space", "an upgrade with a body"):
        reader, writer = await serving.open()
        for byte in HEADS[name].partition(b"\r\n\r\n")[0] + b"\r\n\r\n":
            writer.write(bytes((byte,)))
            await asyncio.sleep(0)
        assert await answers(reader) == [400], name
        writer.close()


async def test_chunks_that_can_be_read_in_two_ways_are_400_and_end_the_connection(
    serving: ServeProcess,
) -> None:
    head = b"POST /acp/inline HTTP/1.1\r\n" + HOST + b"Authorization: Bearer " + serving.token.encode()
    head += b"\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    for name, chunks in CHUNKS.items():
        reader, writer = await serving.open()
        writer.write(head + chunks + NEXT)
        assert await answers(reader) == [400], name
        writer.close()
    reader, writer = await serving.open()
    writer.write(
        head
        + b"5;name=value\r\nhello\r\n0\r\nX: y\r\n\r\n"
        + NEXT.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    )
    assert await answers(reader) == [400, 401], "good chunks with a bad message: the next request is read"
    writer.close()
    assert "Traceback" not in serving.gateway.stderr


async def test_http_2_does_not_begin_in_the_middle_of_a_connection(serving: ServeProcess) -> None:
    reader, writer = await serving.open()
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert await answers(reader) == [200, 400]
    writer.close()
