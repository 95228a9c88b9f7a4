"""One command of an agent: its output and its exit."""

from __future__ import annotations

import asyncio
import codecs
import os
from typing import Any

from dragoman.agents.process import ExitStatus
from dragoman.rpc.call import happens
from dragoman.services.spawn import Command, Running, Spawn

_READ_BYTES = 64 * 1024

_DRAIN_READS = 16
"""Reads that empty a pipe; with more, a child that goes on writing could keep us reading."""

_EXIT_PATIENCE = 1.0
"""Seconds until the loop must have noticed the exit of a command that was ended."""


class OutputTail:
    """Holds at most `limit` bytes; the oldest are dropped first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self.truncated = False

    def add(self, data: bytes) -> None:
        self._kept += data
        surplus = len(self._kept) - self._limit
        if surplus > 0:
            del self._kept[:surplus]
            self.truncated = True

    def text(self, *, complete: bool) -> str:
        """The output as text that begins with a whole character.

        Unless `complete`, a partial character at the end is left out. Bytes that are not UTF-8 become U+FFFD,
        which takes more bytes, so the text may have to be cut again.
        """
        kept = _from_character(bytes(self._kept)) if self.truncated else bytes(self._kept)
        text = codecs.getincrementaldecoder("utf-8")("replace").decode(kept, final=complete)
        encoded = text.encode()
        if len(encoded) <= self._limit:
            return text
        self.truncated = True
        return _from_character(encoded[len(encoded) - self._limit :]).decode()


def _from_character(data: bytes) -> bytes:
    """The data without a partial character at its beginning."""
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]


class Terminal:
    """A terminal, created with `start`; one pipe for stdout and stderr preserves the order of the output."""

    def __init__(self, running: Running, pipe: int, limit: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._running = running
        self._pipe = pipe
        self._output = OutputTail(limit)
        self._exited = asyncio.Event()
        self._status: ExitStatus | None = None
        self._loop.add_reader(pipe, self._read)
        self._watch = self._loop.create_task(self._await_exit())

    @classmethod
    async def start(cls, spawn: Spawn, command: Command, limit: int) -> Terminal:
        readable, writable = os.pipe()
        try:
            running = await spawn(command, writable)
        except BaseException:
            os.close(readable)
            raise
        finally:
            os.close(writable)
        os.set_blocking(readable, False)
        return cls(running, readable, limit)

    @property
    def exited(self) -> bool:
        return self._status is not None

    def output(self) -> dict[str, Any]:
        """The result of `terminal/output`."""
        self._drain()
        text = self._output.text(complete=self.exited)
        result: dict[str, Any] = {"output": text, "truncated": self._output.truncated}
        if self._status is not None:
            result["exitStatus"] = _as_json(self._status)
        return result

    async def wait(self) -> dict[str, Any]:
        """The result of `terminal/wait_for_exit`; all output of the command was read by then."""
        await self._exited.wait()
        assert self._status is not None
        return _as_json(self._status)

    async def end(self) -> None:
        """End the command and all processes it started; its output stays available.

        If it survives SIGKILL, stuck in the kernel, custody tries again.
        """
        await self._running.end()
        await happens(self._exited, _EXIT_PATIENCE)

    async def _await_exit(self) -> None:
        status = await self._running.wait()
        # All output of the command is in the pipe by now. The pipe's end is not awaited: a child in the background may
        # hold the other side open indefinitely.
        self._drain()
        self._status = status
        self._exited.set()

    def _drain(self) -> None:
        for _ in range(_DRAIN_READS):
            if not self._read():
                return

    def _read(self) -> bool:
        if self._pipe < 0:
            return False
        try:
            data = os.read(self._pipe, _READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self.close()
            return False
        self._output.add(data)
        return True

    def close(self) -> None:
        """Close the pipe; called after `end`."""
        if self._pipe >= 0:
            self._loop.remove_reader(self._pipe)
            os.close(self._pipe)
            self._pipe = -1


def _as_json(status: ExitStatus) -> dict[str, Any]:
    return {"exitCode": status.exit_code, "signal": status.signal}
