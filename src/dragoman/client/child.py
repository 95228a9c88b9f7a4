"""`dragoman acp` as a child process: a gateway of one's own, which ends with the connection.

The child ends when its stdin is closed; one that does not is terminated, then killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Sequence
from typing import cast

from dragoman.client.channel import MAX_MESSAGE_BYTES
from dragoman.client.errors import CannotConnect
from dragoman.rpc.link import Link, LinkHandler
from dragoman.rpc.pipe import LoopPipe
from dragoman.transports.stream import StreamLink
from dragoman.wire.framing import Frame

QUIETLY = ("--connect", "never", "--log-level", "error")
"""What the child writes to stderr is told when it ends by itself, so it is errors alone."""
CLOSE_TIMEOUT = 3.0
"""Seconds for the child to end by itself: one whose session another process watches goes on without stdin."""
END_TIMEOUT = 20.0
"""Seconds for the child to end its agents after SIGTERM; it has shorter limits itself."""
SAID_BYTES = 4096
"""What is kept of the child's stderr, for the error when it ends at once."""
LINK_TIMEOUT = 1.0


class Child:
    """Implements `Channel`."""

    name = "the gateway in a child process"

    def __init__(self, arguments: Sequence[str] = ()) -> None:
        self._arguments = arguments
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._said = b""

    async def open(self, handler: LinkHandler) -> None:
        command = [sys.executable, "-m", "dragoman", "acp", *QUIETLY, *self._arguments]
        stdin, ours_to_write = os.pipe()
        ours_to_read, stdout = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *command,
                stdin=stdin,
                stdout=stdout,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,  # Ctrl-C in a terminal is for the program that uses this library
            )
        except OSError as error:
            os.close(ours_to_write)
            os.close(ours_to_read)
            raise CannotConnect(
                f"`{' '.join(command)}` cannot be started: {error.strerror or error}"
            ) from error
        finally:
            os.close(stdin)
            os.close(stdout)
        self._reading = asyncio.create_task(self._read())
        link = _PipeLink(_Explained(handler, self), MAX_MESSAGE_BYTES)
        await link.connect(ours_to_read, ours_to_write)

    async def finish(self) -> None:
        process = self._process
        if process is None:
            return
        try:
            for limit, end in ((CLOSE_TIMEOUT, process.terminate), (END_TIMEOUT, process.kill)):
                try:
                    await asyncio.wait_for(process.wait(), limit)
                    break
                except TimeoutError:
                    end()
            await process.wait()
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
            if self._reading is not None:
                self._reading.cancel()

    async def said(self) -> str:
        """What the child wrote to stderr last, once that has ended; for a child that ended by itself."""
        if self._reading is not None:
            await asyncio.wait({self._reading}, timeout=LINK_TIMEOUT)
        return self._said.decode(errors="replace").strip()

    async def _read(self) -> None:
        assert self._process is not None and self._process.stderr is not None
        while data := await self._process.stderr.read(SAID_BYTES):
            self._said = (self._said + data)[-SAID_BYTES:]


class _PipeLink(StreamLink):
    """Reads one pipe and writes another."""

    async def connect(self, read: int, write: int) -> None:
        loop = asyncio.get_running_loop()
        writer, _ = await loop.connect_write_pipe(lambda: _Writer(self), LoopPipe(os.fdopen(write, "wb", 0)))
        self._outbox.attach(writer)
        await loop.connect_read_pipe(lambda: self, LoopPipe(os.fdopen(read, "rb", 0)))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._reader = cast("asyncio.ReadTransport", transport)


class _Writer(asyncio.BaseProtocol):
    """The protocol on the child's stdin."""

    def __init__(self, link: _PipeLink) -> None:
        self._link = link

    def pause_writing(self) -> None:
        self._link.pause_writing()

    def resume_writing(self) -> None:
        self._link.resume_writing()


class _Explained(LinkHandler):
    """Ends the link with what the child said, if it said something."""

    def __init__(self, above: LinkHandler, child: Child) -> None:
        self._above = above
        self._child = child
        self._ending: asyncio.Task[None] | None = None

    def link_opened(self, link: Link) -> None:
        self._above.link_opened(link)

    def link_messages(self, frames: list[Frame]) -> None:
        self._above.link_messages(frames)

    def link_writable(self, writable: bool) -> None:
        self._above.link_writable(writable)

    def link_closed(self, reason: str | None) -> None:
        self._ending = asyncio.get_running_loop().create_task(self._closed(reason))

    async def _closed(self, reason: str | None) -> None:
        self._above.link_closed(await self._child.said() or reason)
