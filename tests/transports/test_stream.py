"""A client on a byte stream that asks and does not read."""

from __future__ import annotations

import asyncio
import socket

from dragoman.rpc.link import Link
from dragoman.transports.stream import StreamLink
from dragoman.wire import limits
from dragoman.wire.framing import Frame
from support.waiting import until

MESSAGE = b"[" + b"0" * 65535 + b"]"
COUNT = 400


class Echo:
    """Answers every message with itself."""

    link: Link

    def link_opened(self, link: Link) -> None:
        self.link = link

    def link_messages(self, frames: list[Frame]) -> None:
        for frame in frames:
            assert isinstance(frame, bytes)
            self.link.send(frame)

    def link_writable(self, writable: bool) -> None: ...

    def link_closed(self, reason: str | None) -> None: ...


async def test_nothing_more_is_read_from_a_client_that_does_not_read() -> None:
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    link = StreamLink(Echo(), limits.MAX_MESSAGE_BYTES)
    await loop.connect_accepted_socket(lambda: link, ours)
    asking = asyncio.ensure_future(loop.sock_sendall(theirs, (MESSAGE + b"\n") * COUNT))
    await until(lambda: link.backlog > limits.CLIENT_BACKLOG_BYTES)
    for _ in range(100):
        await asyncio.sleep(0)
    assert not asking.done()
    assert link.backlog < 2 * limits.CLIENT_BACKLOG_BYTES
    received = 0
    while received < COUNT * (len(MESSAGE) + 1):
        received += len(await loop.sock_recv(theirs, 1 << 20))
    await asking
    link.close()
    theirs.close()
