"""Sends command output over one unix socket to the followers (`follow.py`) that clients run in their terminals."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from dragoman.machine import short_path
from dragoman.wire import limits

log = logging.getLogger(__name__)

PROGRAM = Path(__file__).with_name("follow.py")
HELLO_SECONDS = 10.0
"""Seconds that a connection has to send its follower id."""
ID_BYTES = 8


class SocketFollower:
    """Implements `Follower`; stores the newest output until the follower connects."""

    def __init__(self, path: Path, done: Callable[[SocketFollower], object]) -> None:
        self.id = secrets.token_hex(ID_BYTES)
        self.command = sys.executable
        self.args = ("-I", "-S", str(PROGRAM), str(path), self.id)
        self._done = done
        self._kept = bytearray()
        self.left_out = 0
        """Bytes of output left out for a slow terminal and not reported to it yet."""
        self._code: int | None = None
        self._writer: asyncio.StreamWriter | None = None

    @property
    def connected(self) -> bool:
        return self._writer is not None

    @property
    def closed(self) -> bool:
        """Whether the follower's terminal was closed while the command runs."""
        return self._writer is not None and self._writer.is_closing()

    def write(self, text: str) -> None:
        data = text.encode(errors="replace")
        if not data or self._code is not None:
            return
        if self._writer is None:
            self._kept += data
            excess = max(len(self._kept) - limits.FOLLOWER_BYTES, 0)
            self.left_out += excess
            del self._kept[:excess]
        elif self._writer.transport.get_write_buffer_size() > limits.FOLLOWER_BYTES:
            self.left_out += len(data)
        else:
            self._report_gap()
            self._send(data)

    def end(self, code: int) -> None:
        if self._code is None:
            self._code = code & 0xFF
            self._finish()

    def attach(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._report_gap()
        self._send(bytes(self._kept))
        self._kept.clear()
        self._finish()

    def _send(self, data: bytes) -> None:
        # After the terminal is closed the transport would log a warning for each write.
        if self._writer is not None and data and not self.closed:
            self._writer.write(b"%d\n%b" % (len(data), data))

    def _report_gap(self) -> None:
        if self.left_out:
            self._send(f"[{self.left_out} bytes of output left out]\n".encode())
            self.left_out = 0

    def _finish(self) -> None:
        if self._writer is not None and self._code is not None:
            self._report_gap()
            if not self.closed:
                self._writer.write(b"=%d\n" % self._code)
            self._writer.close()
            self._done(self)


class SocketFollowers:
    """Implements `Followers`; `folder` creates the folder for the socket, private to this user."""

    def __init__(self, folder: Callable[[], Path]) -> None:
        self._folder = folder
        self._path: Path | None = None
        self._serving: asyncio.Task[asyncio.Server] | None = None
        self._open: dict[str, SocketFollower] = {}

    def open(self) -> SocketFollower | None:
        try:
            path = self._path or self._listen()
        except OSError as error:
            log.warning("commands are shown as text, there is no socket for their terminals: %s", error)
            return None
        follower = SocketFollower(path, lambda each: self._open.pop(each.id, None))
        self._open[follower.id] = follower
        if len(self._open) > limits.FOLLOWERS:  # terminals that no client ever started
            del self._open[next(iter(self._open))]
        return follower

    async def close(self) -> None:
        if self._serving is None or self._path is None:
            return
        (await self._serving).close()
        self._path.unlink(missing_ok=True)
        self._path = None

    def _listen(self) -> Path:
        """Listen at once: a follower that connects before the loop accepts waits in the socket's backlog."""
        folder = self._folder()
        path = folder / f"{os.getpid()}.sock"
        path.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with short_path(path) as name:
                listening.bind(name)
            listening.listen()
        except OSError:
            listening.close()
            raise
        listening.setblocking(False)
        self._serving = asyncio.ensure_future(asyncio.start_unix_server(self._greet, sock=listening))
        self._path = path
        return path

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                name = (await reader.readline()).decode(errors="replace").strip()
        except (OSError, TimeoutError, ValueError):
            name = ""
        follower = self._open.get(name)
        if follower is None or follower.connected:
            writer.close()
        else:
            follower.attach(writer)
