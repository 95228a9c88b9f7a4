"""Too much of everything: a status or a close code, no growth, and others go on."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket as sockets
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, Event, ResponseReceived, StreamReset

from dragoman.server import limits
from dragoman.server.asgi import Receive, Request, Scope, Send, Stalled
from dragoman.server.hypercorn.connection import HypercornServer
from dragoman.server.listen.acceptor import PAUSE
from dragoman.server.listen.connection_limit import ConnectionLimit, origin_of
from support.clients.streamable_client import StreamableClient
from support.rpc_peer import PATIENCE
from support.serve_process import ServeProcess, WebSocketFraming, read_head

from .conftest import Serve, limited, works

MEGABYTE = 1024 * 1024


def busy(serving: ServeProcess) -> float:
    """Seconds of processor time so far."""
    fields = Path(f"/proc/{serving.gateway.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# -- connections


def test_a_crowd_is_counted_in_all_and_by_address() -> None:
    crowd = ConnectionLimit(files=limits.RESERVED_FILES + 40, per_address=2)
    assert [crowd.enter("192.0.2.7") for _ in range(3)] == [True, True, False]
    assert crowd.enter("192.0.2.8")
    assert all(crowd.enter("127.0.0.1") for _ in range(37))  # this machine has no limit of its own
    assert not crowd.enter("127.0.0.1")  # but there is room for forty only
    crowd.leave("192.0.2.7")
    assert crowd.enter("192.0.2.7")
    assert len(crowd) == 40


def test_neighbouring_addresses_of_one_network_count_as_one() -> None:
    assert origin_of("2001:db8:1:2:aaaa::1") == origin_of("2001:db8:1:2:bbbb::2")
    assert origin_of("2001:db8:1:3::1") != origin_of("2001:db8:1:2::1")
    assert origin_of("::ffff:192.0.2.7") == origin_of("192.0.2.7") == "192.0.2.7"
    assert origin_of("127.0.0.5") == origin_of("::1") == origin_of("fe80") == ""


@pytest.mark.parametrize(
    ("many", "allowed"),
    [(2_000, 1_000), pytest.param(10_000, limits.MAX_CONNECTIONS, marks=pytest.mark.long)],
)
async def test_thousands_of_connections_that_say_nothing(
    serve: Serve, workspace: Path, many: int, allowed: int
) -> None:
    serving = await serve(prefix=limited(MAX_CONNECTIONS=allowed))
    before = serving.resident
    silent: list[sockets.socket] = []
    loop = asyncio.get_running_loop()
    try:
        for _ in range(many):
            each = sockets.socket()
            each.setblocking(False)
            silent.append(each)
            async with asyncio.timeout(PATIENCE):
                await loop.sock_connect(each, ("127.0.0.1", serving.port))
        assert serving.resident - before < 100 * MEGABYTE
    finally:
        for each in silent:
            each.close()
    async with asyncio.timeout(2 * PATIENCE):
        while True:  # the room comes back as they leave
            answer = await serving.http().get("/healthz")
            if answer.status_code == 200:
                break
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "30")
    await works(serving, workspace)


async def test_running_out_of_descriptors_is_said_and_does_not_spin(serve: Serve, workspace: Path) -> None:
    serving = await serve(prefix=("prlimit", "--nofile=48:48"))
    held = [await serving.open() for _ in range(60)]
    await serving.gateway.logged("no connection can be accepted")
    before = busy(serving)
    await asyncio.sleep(PAUSE)  # that nothing happens can only be seen over time
    assert busy(serving) - before < PAUSE / 2
    for _, writer in held:
        writer.close()
    async with asyncio.timeout(PATIENCE):
        assert (await serving.http().get("/healthz")).status_code == 200
    assert "Traceback" not in serving.gateway.stderr


async def test_long_headers_are_431_also_in_a_later_request(serving: ServeProcess) -> None:
    client = serving.http()
    assert (await client.get("/healthz")).status_code == 200
    answer = await client.get("/healthz", headers={"X-Long": "a" * 40_000})
    assert answer.status_code == 431


# -- WebSocket


BROKEN = [
    (b"\xc1\x80\x00\x00\x00\x00", 1002),  # RSV1: compressed, which nobody agreed to
    (b"\xa1\x80\x00\x00\x00\x00", 1002),  # RSV2
    (b"\x81\x02{}", 1002),  # not masked
    (b"\x81\x82\x00\x00\x00\x00\xff\xfe", 1007),  # not UTF-8
    (b"\x83\x80\x00\x00\x00\x00", 1002),  # an opcode that means nothing
    (b"\x80\x80\x00\x00\x00\x00", 1002),  # goes on with what was never begun
    (b"\x09\x80\x00\x00\x00\x00", 1002),  # a ping in pieces
    (b"\x89\xfe\x00\x7e\x00\x00\x00\x00" + b"a" * 126, 1002),  # a ping that is too long
    (b"\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00", 1002),  # 2^64 bytes to come
]
"""Frames, and the code that they are closed with."""


async def test_frames_that_break_the_protocol_are_closed_with_a_code(serving: ServeProcess) -> None:
    for frame, code in BROKEN:
        socket = await serving.socket()
        socket.send_bytes(frame)
        assert await socket.closed() == code, frame


async def test_compression_is_not_agreed_to(serving: ServeProcess) -> None:
    offer = {"Sec-WebSocket-Extensions": "permessage-deflate; client_max_window_bits"}
    socket = await serving.socket(headers={**serving.bearer, **offer})
    assert "sec-websocket-extensions" not in socket.handshake


async def test_who_pings_and_asks_without_reading_is_not_buffered_for(
    serving: ServeProcess, workspace: Path
) -> None:
    reader, writer = await serving.open()
    framing = WebSocketFraming()
    head = [
        f"GET /acp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {serving.token}\r\nUpgrade: websocket"
    ]
    head.append(
        "Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13"
    )
    writer.write("\r\n".join(head).encode() + b"\r\n\r\n")
    assert (await read_head(reader))[0] == 101
    assert isinstance(writer.transport, asyncio.Transport)
    writer.transport.pause_reading()
    before = serving.resident
    writer.write(
        framing.frame(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}')
    )
    flood = framing.frame(b"p" * 125, opcode=9) * 2000 + framing.frame(b"not json") * 2000
    sent = 0
    with contextlib.suppress(TimeoutError):
        while sent < 100 * MEGABYTE:  # until back-pressure stops us
            writer.write(flood)
            sent += len(flood)
            async with asyncio.timeout(1):
                await writer.drain()
    assert sent < 100 * MEGABYTE
    assert serving.resident - before < 40 * MEGABYTE
    await works(serving, workspace)
    writer.transport.abort()


# -- HTTP/2


class RawH2:
    """An HTTP/2 peer that does as it is told, not as it should."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
        self.reader, self.writer, self.port = reader, writer, port
        settings = H2Configuration(client_side=True, validate_outbound_headers=False)
        self.h2 = H2Connection(settings)
        self.h2.initiate_connection()
        self.events: list[Event] = []

    def headers(self, path: str = "/healthz", method: str = "GET") -> list[tuple[str, str]]:
        return [
            (":method", method),
            (":scheme", "http"),
            (":path", path),
            (":authority", f"127.0.0.1:{self.port}"),
        ]

    async def flush(self) -> None:
        self.writer.write(self.h2.data_to_send())
        await self.writer.drain()

    async def until(self, wanted: Callable[[list[Event]], bool]) -> None:
        """Read until it is so, or the peer ended it."""
        async with asyncio.timeout(PATIENCE):
            while not wanted(self.events):
                data = await self.reader.read(65536)
                if not data:
                    return
                self.events += self.h2.receive_data(data)
                with contextlib.suppress(ConnectionError):
                    await self.flush()


@pytest.fixture
async def raw_h2(serving: ServeProcess) -> AsyncIterator[RawH2]:
    peer = RawH2(*await serving.open(), serving.port)
    yield peer
    peer.writer.transport.abort()


def answers(events: list[Event]) -> list[ResponseReceived]:
    return [each for each in events if isinstance(each, ResponseReceived)]


def goodbyes(events: list[Event]) -> list[ConnectionTerminated]:
    return [each for each in events if isinstance(each, ConnectionTerminated)]


async def test_five_thousand_streams_at_once_end_that_connection_only(
    serving: ServeProcess, raw_h2: RawH2, workspace: Path
) -> None:
    before = serving.resident
    host = b"127.0.0.1"
    block = (
        b"\x83\x86\x04\x04/acp\x01" + bytes((len(host),)) + host
    )  # POST, http, path, authority; a body is to come
    head = len(block).to_bytes(3) + b"\x01\x04"
    await raw_h2.flush()
    raw_h2.writer.write(b"".join(head + (2 * n + 1).to_bytes(4) + block for n in range(5000)))
    with contextlib.suppress(ConnectionError):
        assert await asyncio.wait_for(raw_h2.reader.read(), PATIENCE)  # until it is ended
    await works(serving, workspace)
    assert serving.resident - before < 60 * MEGABYTE
    assert "Traceback" not in serving.gateway.stderr


async def test_streams_for_sessions_that_there_are_not_are_404_and_leave_nothing(
    serving: ServeProcess,
) -> None:
    peer = StreamableClient(serving.http(http1=False, http2=True))
    await peer.initialize()
    before = serving.resident

    async def ask(number: int) -> int:
        wanted = {"Accept": "text/event-stream", "Acp-Session-Id": f"dgm_{number}"}
        return (await peer.client.get("/acp", headers={**peer.headers(), **wanted})).status_code

    assert set(await asyncio.gather(*map(ask, range(200)))) == {404}
    assert serving.resident - before < 20 * MEGABYTE


async def test_requests_that_are_taken_back_again_and_again_end_the_connection(
    serving: ServeProcess, raw_h2: RawH2, workspace: Path
) -> None:
    """Rapid reset, CVE-2023-44487."""
    for number in range(limits.MAX_H2_RESETS + 1):
        raw_h2.h2.send_headers(2 * number + 1, raw_h2.headers(), end_stream=True)
        raw_h2.h2.reset_stream(2 * number + 1)
    await raw_h2.flush()  # all at once: whoever still sends when it is cut off may not see the goodbye
    await raw_h2.until(lambda events: bool(goodbyes(events)))
    assert [each.error_code for each in goodbyes(raw_h2.events)] == [11]  # ENHANCE_YOUR_CALM
    await works(serving, workspace)


async def test_bad_requests_and_priorities_cost_a_stream_not_the_connection(
    serving: ServeProcess, raw_h2: RawH2
) -> None:
    h2 = raw_h2.h2
    h2.send_headers(1, raw_h2.headers("/\u00ff"), end_stream=True)
    h2.send_headers(3, [(":method", "CONNECT"), (":authority", "127.0.0.1")], end_stream=True)
    await raw_h2.flush()
    frames = (
        struct.pack("!I", 5)[1:] + b"\x02\x00" + struct.pack("!II", 101 + 2 * n, 0) + b"\x10"
        for n in range(3000)
    )
    raw_h2.writer.write(b"".join(frames))
    h2.send_headers(7, raw_h2.headers(), end_stream=True)
    await raw_h2.flush()
    await raw_h2.until(lambda events: bool(answers(events)))
    assert [each.stream_id for each in answers(raw_h2.events)] == [7]
    assert {each.stream_id for each in raw_h2.events if isinstance(each, StreamReset)} == {1, 3}
    assert "Traceback" not in serving.gateway.stderr


async def test_more_than_a_thousand_requests_on_one_connection_are_answered(
    serving: ServeProcess, raw_h2: RawH2
) -> None:
    for number in range(1100):
        raw_h2.h2.send_headers(2 * number + 1, raw_h2.headers(), end_stream=True)
        if not number % 100:
            await raw_h2.flush()
            await raw_h2.until(lambda events, number=number: len(answers(events)) > number - 50)  # type: ignore[misc]
    await raw_h2.flush()
    await raw_h2.until(lambda events: len(answers(events)) == 1100)
    assert len(answers(raw_h2.events)) == 1100


# -- readers that stall


Application = Callable[[Scope, Receive, Send], Awaitable[None]]


@contextlib.asynccontextmanager
async def leg_of(application: Application) -> AsyncIterator[tuple[int, list[str]]]:
    """The HTTP leg on a port of its own; the list tells how connections ended."""
    leg = HypercornServer(application, MEGABYTE, 20.0)
    ended: list[str] = []

    class First(asyncio.Protocol):
        transport: asyncio.Transport

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            self.transport = transport

        def data_received(self, data: bytes) -> None:
            leg.take(self.transport, data, lambda: ended.append("ended"))

    server = await asyncio.get_running_loop().create_server(First, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], ended
    finally:
        server.close()
        leg.cancel()
        async with asyncio.timeout(PATIENCE):
            await leg.end()


@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/2"])
async def test_a_reader_that_stalls_is_cut_off(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STALL_TIMEOUT", 0.3)
    monkeypatch.setattr(limits, "LINGER_TIMEOUT", 0.3)
    stalled = asyncio.Event()

    async def flood(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive, send)
        try:
            await request.start(200, [])
            for _ in range(1000):
                await request.write(b"x" * 256 * 1024)
        except Stalled:
            stalled.set()

    async with leg_of(flood) as (port, ended):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        if version == "HTTP/2":
            peer = RawH2(reader, writer, port)
            peer.h2.send_headers(1, peer.headers(), end_stream=True)
            await peer.flush()
            async with asyncio.timeout(PATIENCE):
                await stalled.wait()
            await peer.until(lambda events: any(isinstance(each, StreamReset) for each in events))
            assert not ended  # the others of its connection go on
            peer.h2.send_headers(3, peer.headers(), end_stream=True)
            await peer.flush()
            await peer.until(lambda events: len(answers(events)) == 2)
        else:
            assert isinstance(writer.transport, asyncio.Transport)
            writer.transport.pause_reading()
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            async with asyncio.timeout(PATIENCE):
                while not ended:
                    await asyncio.sleep(0.02)  # the end of a connection has no event here
        writer.transport.abort()


async def test_a_body_that_does_not_come_is_408(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BODY_TIMEOUT", 0.2)
    statuses: list[int] = []

    async def read(scope: Scope, receive: Receive, send: Send) -> None:
        from dragoman.server.asgi import HttpError, Response

        request = Request(scope, receive, send)
        try:
            await request.body(1000)
        except HttpError as error:
            statuses.append(error.status)
            await request.respond(Response.refusal(error))

    async with leg_of(read) as (port, ended):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf")
        assert (await read_head(reader))[0] == 408
        writer.close()
        async with asyncio.timeout(PATIENCE):
            while not ended:
                await asyncio.sleep(0.02)  # the end of a connection has no event here
    assert (statuses, ended) == ([408], ["ended"])


async def test_an_answer_that_comes_before_the_body_says_that_the_connection_ends(
    serving: ServeProcess,
) -> None:
    reader, writer = await serving.open()
    writer.write(b"POST /acp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n")
    status, headers = await read_head(reader)
    assert (status, headers["connection"]) == (401, "close")
    writer.close()
