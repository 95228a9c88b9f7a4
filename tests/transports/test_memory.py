"""A client in our own process."""

from __future__ import annotations

import asyncio

from dragoman.rpc.link import Link
from dragoman.transports.memory import connect
from dragoman.wire import limits
from dragoman.wire.framing import Frame


class Handler:
    link: Link

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.writable: list[bool] = []
        self.closed = asyncio.Event()

    def link_opened(self, link: Link) -> None:
        self.link = link

    def link_messages(self, frames: list[Frame]) -> None:
        self.frames += frames

    def link_writable(self, writable: bool) -> None:
        self.writable.append(writable)

    def link_closed(self, reason: str | None) -> None:
        self.closed.set()


async def both_closed(one: Handler, other: Handler) -> None:
    async with asyncio.timeout(5):
        await one.closed.wait()
        await other.closed.wait()


async def test_messages_arrive_in_order_and_not_at_once() -> None:
    one, other = Handler(), Handler()
    connect(one, other)
    one.link.send(b"1")
    one.link.send(b"2")
    assert other.frames == [], "a handler is never called from within its own call"
    one.link.close()
    await both_closed(one, other)
    assert other.frames == [b"1", b"2"], "what was sent before the end arrives"


async def test_after_the_end_nothing_is_sent() -> None:
    one, other = Handler(), Handler()
    connect(one, other)
    other.link.close()
    await both_closed(one, other)
    one.link.send(b"late")
    other.link.send(b"late")
    assert (one.frames, other.frames, one.link.backlog) == ([], [], 0)


async def test_who_does_not_read_holds_the_other_back() -> None:
    one, other = Handler(), Handler()
    connect(one, other)
    other.link.pause()
    one.link.send(b"x" * (limits.WRITE_HIGH_WATER + 1))
    one.link.send(b"y")
    await asyncio.sleep(0)
    assert (one.writable, other.frames) == ([False], [])
    assert one.link.backlog > limits.WRITE_HIGH_WATER
    other.link.resume()
    one.link.close()
    await both_closed(one, other)
    assert one.writable == [False, True]
    assert len(other.frames) == 2
