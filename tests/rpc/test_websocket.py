"""Messages from the fragments of a WebSocket, and how many of its frames are read at once."""

from __future__ import annotations

import asyncio
import socket
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from wsproto.frame_protocol import Opcode

from dragoman.rpc.websocket import WebSocket, _Frames, _Message, frame_masked_text, whole_text
from dragoman.wire import limits
from dragoman.wire.framing import FramingError
from dragoman.wire.limits import OVERSIZE_PREFIX_BYTES
from support.clients.flood_program import ws_frame
from support.clients.link_recorder import LinkRecorder
from support.rpc_peer import PATIENCE
from support.waiting import until


def test_fragments_become_one_message() -> None:
    message = _Message(100)
    assert message.add(Opcode.TEXT, "a", False) is None
    assert message.add(Opcode.TEXT, "", False) is None
    assert message.add(Opcode.TEXT, "b\n", True) == b"ab "
    assert message.add(Opcode.TEXT, "c", True) == b"c"


def test_empty_fragments_without_end_cost_nothing() -> None:
    message = _Message(100)
    tracemalloc.start()
    try:
        for _ in range(100_000):
            message.add(Opcode.TEXT, "", False)
        assert tracemalloc.get_traced_memory()[0] < 10_000
    finally:
        tracemalloc.stop()


def test_of_a_message_that_is_too_long_only_the_beginning_is_kept() -> None:
    message = _Message(10)
    assert message.add(Opcode.TEXT, "0123456789", False) is None
    for _ in range(1000):
        message.add(Opcode.TEXT, "x" * 1000, False)
    refused = message.add(Opcode.TEXT, "", True)
    assert isinstance(refused, FramingError)
    assert refused.prefix == (b"0123456789" + b"x" * OVERSIZE_PREFIX_BYTES)[:OVERSIZE_PREFIX_BYTES]
    assert message.add(Opcode.TEXT, "next", True) == b"next"


# -- one whole message in one read


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65_535])
def test_a_whole_message_is_read_at_once(size: int) -> None:
    text = ("é" * size).encode()[:size] if size != 1 else b"a"
    text = text.decode(errors="ignore").encode().ljust(size, b"x")
    assert whole_text(frame_masked_text(text)) == text


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(frame_masked_text(b"abc")[:-1], id="cut off"),
        pytest.param(frame_masked_text(b"abc") + b"x", id="more behind it"),
        pytest.param(frame_masked_text(b"abc") * 2, id="two"),
        pytest.param(b"\x81", id="one byte"),
        pytest.param(b"\x81\x03abc", id="without a mask"),
        pytest.param(b"\x81\xff" + bytes(8) + bytes(4), id="eight bytes of length"),
        pytest.param(b"\x81\xfe\x00\x03" + bytes(4) + b"abc", id="longer length than it needs"),
        pytest.param(b"\x01" + frame_masked_text(b"abc")[1:], id="a fragment"),
        pytest.param(b"\xc1" + frame_masked_text(b"abc")[1:], id="a reserved bit"),
        pytest.param(b"\x89" + frame_masked_text(b"abc")[1:], id="a ping"),
        pytest.param(frame_masked_text(b"\xff\xfe"), id="no UTF-8"),
    ],
)
def test_everything_else_is_left_to_the_general_reader(data: bytes) -> None:
    assert whole_text(data) is None


@pytest.mark.parametrize("cut", [1, 2, 5, 7, 9])
async def test_whole_messages_and_fragments_keep_their_order(cut: int) -> None:
    heard = LinkRecorder()
    fragments = b"\x01" + frame_masked_text(b"be")[1:] + b"\x80" + frame_masked_text(b"tween")[1:]
    fifth = frame_masked_text(b"fifth")
    async with opened(heard) as (link, _, _):
        for data in (
            frame_masked_text(b"first"),
            fragments[:cut],
            fragments[cut:],
            frame_masked_text(b"third\n"),
            frame_masked_text(b"fourth") + fifth[:3],
            fifth[3:],
            frame_masked_text(b"sixth"),
        ):
            link.data_received(data)
    expected = [b"first", b"between", b"third ", b"fourth", b"fifth", b"sixth"]
    assert heard.frames == expected


def test_a_reader_knows_whether_the_next_byte_begins_a_message() -> None:
    """It looks into wsproto for that."""
    frames = _Frames(client=False, extensions=[])
    assert frames.between_messages
    for part, between in (
        (b"\x01", False),
        (frame_masked_text(b"a")[1:], False),
        (b"\x80\x80\0\0\0\0", True),
    ):
        frames.receive_bytes(part)
        list(frames.received_frames())
        assert frames.between_messages is between


async def test_a_whole_message_above_the_limit_is_refused() -> None:
    heard = LinkRecorder()
    link = WebSocket(heard, 10, client=False)
    link.data_received(frame_masked_text(b"x" * 11))
    assert isinstance(heard.frames[0], FramingError)


# -- many frames at once


@asynccontextmanager
async def opened(
    heard: LinkRecorder,
) -> AsyncIterator[tuple[WebSocket, asyncio.StreamReader, asyncio.StreamWriter]]:
    """A socket after its handshake, and its peer."""
    ours, theirs = socket.socketpair()
    link = WebSocket(heard, 1_000_000, client=False)
    transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=ours)
    link.open(transport, b"", b"")
    reader, writer = await asyncio.open_connection(sock=theirs)
    yield link, reader, writer
    writer.transport.abort()
    transport.abort()
    await heard.closed()


class PerTurn(LinkRecorder):
    """Also counts the messages of each loop turn."""

    def __init__(self) -> None:
        super().__init__()
        self.turns: list[int] = [0]
        asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self.turns.append(0)
        if not self.closings:
            asyncio.get_running_loop().call_soon(self._turn)

    def link_messages(self, frames: list[bytes | FramingError]) -> None:
        super().link_messages(frames)
        self.turns[-1] += len(frames)


async def test_thousands_of_messages_in_one_read_are_taken_some_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "LOOP_BUDGET_SECONDS", 0.0)
    heard = PerTurn()
    async with opened(heard) as (_, _, writer):
        texts = [b"%d" % number for number in range(3000)]
        writer.write(b"".join(ws_frame(1, text) for text in texts))
        await heard.message(2999)
        assert heard.frames == texts
        assert max(heard.turns) <= 2 * limits.FRAMES_AT_ONCE


async def test_frames_that_came_before_the_peer_left_are_read_to_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "LOOP_BUDGET_SECONDS", 0.0)
    heard = LinkRecorder()
    async with opened(heard) as (_, _, writer):
        writer.write(ws_frame(1, b"1") * 3000)
        writer.write_eof()
        await heard.closed()
        assert len(heard.frames) == 3000


class Pausing(LinkRecorder):
    """Wants nothing more after each read."""

    link: WebSocket

    def link_messages(self, frames: list[bytes | FramingError]) -> None:
        super().link_messages(frames)
        self.link.pause()


async def test_a_handler_that_wants_no_more_is_handed_no_more_of_what_came() -> None:
    heard = Pausing()
    async with opened(heard) as (link, _, writer):
        heard.link = link
        writer.write(ws_frame(1, b"1") * 100)
        reads = 0
        while len(heard.frames) < 100:
            await heard.message(len(heard.frames))
            assert heard.reads == reads + 1
            assert len(heard.frames) <= heard.reads * limits.FRAMES_AT_ONCE
            reads = heard.reads
            link.resume()


@pytest.mark.parametrize(
    "frame",
    [ws_frame(9), ws_frame(10), ws_frame(2), ws_frame(0, fin=False), ws_frame(0, b"x", fin=False)],
    ids=["pings", "pongs", "binaries", "empty fragments", "tiny fragments"],
)
async def test_a_peer_whose_frames_say_nothing_is_read_more_slowly(
    monkeypatch: pytest.MonkeyPatch, frame: bytes
) -> None:
    monkeypatch.setattr(limits, "IDLE_FRAMES", 50)
    monkeypatch.setattr(limits, "IDLE_FRAMES_WITHIN", 0.1)
    heard = LinkRecorder()
    loop = asyncio.get_running_loop()
    async with opened(heard) as (_, _, writer):
        begun = loop.time()
        if frame[0] == 0:
            writer.write(ws_frame(1, fin=False))
        writer.write(frame * 175)
        writer.write(ws_frame(0 if frame[0] == 0 else 1, b"after"))
        async with asyncio.timeout(PATIENCE):
            await until(lambda: heard.frames)
        assert heard.frames[0].endswith(b"after")  # type: ignore[union-attr]
        assert loop.time() - begun >= 0.2, "it had to wait three times"


async def test_pings_are_answered_in_their_order_also_when_they_are_many() -> None:
    async with opened(LinkRecorder()) as (_, reader, writer):
        writer.write(b"".join(ws_frame(9, b"%03d" % number) for number in range(500)))
        async with asyncio.timeout(PATIENCE):
            for number in range(500):
                assert await reader.readexactly(5) == b"\x8a\x03%03d" % number
