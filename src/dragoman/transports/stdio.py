"""ACP on this process's stdin and stdout: one client, and stdout carries nothing else (G-006)."""

from __future__ import annotations

import asyncio
import os
import select
import stat
import sys
import threading
from typing import IO, cast

from dragoman.rpc.call import happens
from dragoman.rpc.link import LinkHandler
from dragoman.rpc.pipe import LoopPipe
from dragoman.terminal import escape_json
from dragoman.transports.stream import StreamLink

READ_SIZE = 64 * 1024
FLUSH_TIMEOUT = 1.0
"""Seconds that a client has to read the last messages after it closed its side."""


class StdioLink(StreamLink):
    """stdin and stdout as one stream."""

    @classmethod
    async def open(cls, handler: LinkHandler, max_bytes: int) -> StdioLink:
        """Take over stdin and stdout; later prints to stdout go to stderr."""
        link = cls(handler, max_bytes)
        stdin, stdout = os.dup(0), os.dup(1)
        # A child that reads stdin must not consume the client's bytes.
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        await link._open_writer(os.fdopen(stdout, "wb", 0))
        await link._open_reader(os.fdopen(stdin, "rb", 0))
        return link

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._reader = cast("asyncio.ReadTransport", transport)

    def connection_lost(self, error: Exception | None) -> None:
        """Handle the end of stdin; the end of stdout is handled by `_Writer`."""
        self._end(str(error) if error is not None else None)

    async def finish(self) -> None:
        """Write the queued messages and close; a client that does not read delays this by `FLUSH_TIMEOUT` at most."""
        self._outbox.close()
        await happens(self.closed, FLUSH_TIMEOUT)
        for descriptor in self._shared:
            _set_blocking(descriptor)  # terminals are shared with the shell, which expects them blocking

    async def _open_writer(self, pipe: IO[bytes]) -> None:
        loop = asyncio.get_running_loop()
        if os.isatty(pipe.fileno()):
            self._shared = []
            self._outbox.attach(_TerminalWriter(pipe, self))
        elif _is_pollable(pipe):
            shared = LoopPipe(pipe)
            self._shared = [shared]
            transport, _ = await loop.connect_write_pipe(lambda: _Writer(self), shared)
            self._outbox.attach(transport)
        else:
            self._shared = []
            self._outbox.attach(_FileWriter(pipe, self))

    async def _open_reader(self, pipe: IO[bytes]) -> None:
        loop = asyncio.get_running_loop()
        if _is_pollable(pipe):
            shared = LoopPipe(pipe)
            self._shared.append(shared)
            await loop.connect_read_pipe(lambda: self, shared)
        else:
            threading.Thread(target=self._read_file, args=(pipe, loop), daemon=True).start()

    def _read_file(self, pipe: IO[bytes], loop: asyncio.AbstractEventLoop) -> None:
        """Read for `dragoman acp < messages`: files cannot be polled, so a thread reads them."""
        while data := os.read(pipe.fileno(), READ_SIZE):
            loop.call_soon_threadsafe(self.data_received, data)
        loop.call_soon_threadsafe(self.connection_lost, None)


class _Writer(asyncio.BaseProtocol):
    """The protocol on stdout's pipe."""

    def __init__(self, link: StdioLink) -> None:
        self._link = link

    def connection_lost(self, error: Exception | None) -> None:
        self._link.closed.set()
        self._link._end(str(error) if error is not None else None)

    def pause_writing(self) -> None:
        self._link.pause_writing()

    def resume_writing(self) -> None:
        self._link.resume_writing()


class _FileWriter(asyncio.WriteTransport):
    """Writer for `dragoman acp > file`: a file takes all bytes at once."""

    def __init__(self, pipe: IO[bytes], link: StdioLink) -> None:
        super().__init__()
        self._pipe = pipe
        self._link = link

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._pipe.write(data)

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def is_closing(self) -> bool:
        return self._link.closed.is_set()

    def close(self) -> None:
        self._link.closed.set()


class _TerminalWriter(_FileWriter):
    """Writer for a user's terminal; escapes control characters, so that an agent's text cannot control the terminal.

    Not a transport of the loop: uvloop also reads from a descriptor that it writes to, and stdin is the same terminal.
    """

    def write(self, data: bytes | bytearray | memoryview) -> None:
        shown = memoryview(escape_json(bytes(data).decode(errors="replace")).encode())
        while shown:
            select.select([], [self._pipe], [])
            try:
                shown = shown[os.write(self._pipe.fileno(), shown) :]
            except BlockingIOError:
                continue  # opening stdin made it non-blocking: both are one terminal
            except OSError as error:  # hung up
                self.close()
                self._link._end(str(error))
                return


def _is_pollable(pipe: IO[bytes]) -> bool:
    mode = os.fstat(pipe.fileno()).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(pipe.fileno())


def _set_blocking(pipe: LoopPipe) -> None:
    try:
        os.set_blocking(pipe.fileno(), True)
    except (OSError, ValueError):
        pass  # closed already
