"""The one writer of a stream, over real sockets and pipes on both event loops."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvloop

from dragoman.rpc.outbox import Outbox
from dragoman.wire import limits
from dragoman.wire.framing import join_headers

PATIENCE = 20.0
pytestmark = pytest.mark.filterwarnings("ignore:Overriding the .event_loop_policy. fixture")


@pytest.fixture(
    params=[asyncio.DefaultEventLoopPolicy(), uvloop.EventLoopPolicy()], ids=["asyncio", "uvloop"]
)
def event_loop_policy(request: pytest.FixtureRequest) -> Any:
    return request.param


class Far(asyncio.Protocol):
    """Wires an outbox to a transport as links do, and keeps what it is told."""

    def __init__(self) -> None:
        self.writable: list[bool] = []
        self.changed = asyncio.Event()
        self.lost = asyncio.Event()
        self.outbox = Outbox(asyncio.get_running_loop(), self.note)

    def note(self, writable: bool) -> None:
        self.writable.append(writable)
        self.changed.set()

    def pause_writing(self) -> None:
        self.outbox.pause_writing()

    def resume_writing(self) -> None:
        self.outbox.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()


class Counted:
    """A transport that counts the writes that reach it."""

    def __init__(self, transport: Any) -> None:
        self.transport = transport
        self.writes: list[int] = []

    def write(self, data: bytes) -> None:
        self.writes.append(len(data))
        self.transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)


class Wire:
    """Our end with its outbox, their end as a plain blocking file descriptor."""

    def __init__(self, far: Far, transport: Any, their: int) -> None:
        self.far = far
        self.outbox = far.outbox
        self.transport: Any = Counted(transport)
        self.their = their

    async def read(self, count: int | None = None) -> bytes:
        """So many bytes, or all until the end."""
        data = bytearray()
        async with asyncio.timeout(PATIENCE):
            while count is None or len(data) < count:
                want = 65536 if count is None else min(65536, count - len(data))
                part = await asyncio.get_running_loop().run_in_executor(None, os.read, self.their, want)
                if not part:
                    break
                data += part
        return bytes(data)


@pytest.fixture(params=["socket", "pipe"])
async def wire(request: pytest.FixtureRequest) -> AsyncIterator[Wire]:
    loop = asyncio.get_running_loop()
    transport: Any
    if request.param == "socket":
        ours, theirs = socket.socketpair()
        transport, far = await loop.create_connection(Far, sock=ours)
        their = theirs.detach()
    else:
        their, end = os.pipe()
        transport, far = await loop.connect_write_pipe(Far, os.fdopen(end, "wb", buffering=0))
    yield Wire(far, transport, their)
    os.close(their)
    if not transport.is_closing():
        transport.abort()
    async with asyncio.timeout(PATIENCE):
        await far.lost.wait()


async def test_what_one_turn_sends_is_one_write(wire: Wire) -> None:
    wire.outbox.attach(wire.transport)
    for turn in range(3):
        for number in range(100):
            wire.outbox.send(b"%d" % number)
        assert len(wire.transport.writes) == turn
        await asyncio.sleep(0)
    expected = b"".join(b"%d\n" % number for number in range(100))
    assert await wire.read(3 * len(expected)) == expected * 3
    assert wire.transport.writes == [len(expected)] * 3


async def test_what_was_sent_before_there_was_a_stream_goes_first(wire: Wire) -> None:
    wire.outbox.send(b"1")
    await asyncio.sleep(0)
    wire.outbox.send(b"2")
    assert wire.outbox.backlog == 2
    wire.outbox.attach(wire.transport)
    wire.outbox.send(b"3")
    assert await wire.read(6) == b"1\n2\n3\n"
    assert wire.outbox.backlog == 0


async def test_messages_are_framed_as_the_peer_wants_them(wire: Wire) -> None:
    wire.outbox.use_framing(join_headers)
    wire.outbox.attach(wire.transport)
    wire.outbox.send("ü".encode())
    expected = b"Content-Length: 2\r\n\r\n" + "ü".encode()
    assert await wire.read(len(expected)) == expected


@pytest.mark.rule("G-086")
async def test_a_peer_that_does_not_read_is_told_of_once_and_again_when_it_reads_on(wire: Wire) -> None:
    wire.outbox.attach(wire.transport)
    message = b"x" * 10_000
    sent = 0
    async with asyncio.timeout(PATIENCE):
        while not wire.far.writable:
            wire.outbox.send(message)
            sent += 1
            await asyncio.sleep(0)
    assert wire.far.writable == [False]
    assert wire.outbox.backlog > limits.WRITE_HIGH_WATER
    wire.far.changed.clear()
    assert await wire.read(sent * 10_001) == (message + b"\n") * sent
    async with asyncio.timeout(PATIENCE):
        await wire.far.changed.wait()
    assert wire.far.writable == [False, True]
    assert wire.outbox.backlog <= limits.WRITE_LOW_WATER


@pytest.mark.rule("G-086")
async def test_a_flood_within_one_turn_is_felt_within_that_turn(wire: Wire) -> None:
    wire.outbox.attach(wire.transport)
    message = b"x" * (limits.WRITE_HIGH_WATER // 2)
    for _ in range(8):
        wire.outbox.send(message)
    assert wire.far.writable == [False]
    wire.outbox.close()
    assert await wire.read() == (message + b"\n") * 8


async def test_closing_sends_what_is_queued_and_nothing_more(wire: Wire) -> None:
    wire.outbox.attach(wire.transport)
    big = b"x" * 1_000_000
    wire.outbox.send(big)
    wire.outbox.send(b"last")
    wire.outbox.close()
    wire.outbox.send(b"too late")
    wire.outbox.close()
    assert await wire.read() == big + b"\nlast\n"


async def test_closing_before_there_is_a_stream_closes_it_when_it_comes(wire: Wire) -> None:
    wire.outbox.send(b"last words")
    wire.outbox.close()
    wire.outbox.attach(wire.transport)
    assert await wire.read() == b"last words\n"


async def test_sending_to_a_stream_that_broke_is_harmless(wire: Wire) -> None:
    wire.outbox.attach(wire.transport)
    wire.transport.abort()
    wire.outbox.send(b"x")
    await asyncio.sleep(0)
    wire.outbox.close()
    assert wire.outbox.backlog == 0
