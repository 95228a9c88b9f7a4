"""A child process in custody: its start, its pid and its exit.

On Linux the watcher starts the child, so the gateway is not its parent: the watcher reports its exit over a pipe. If
the watcher is killed, the kernel still reports that the process has ended, but not its exit code.

Elsewhere the gateway starts the child itself. The loop's own subprocess support is not used: with uvloop a child also
inherits copies of its stdin, stdout and stderr under higher numbers, which its own children keep open for ever.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from dragoman.agents.custody import table
from dragoman.agents.custody.exits import on_exit
from dragoman.agents.custody.starter import Order

OnExit = Callable[[int | None], None]
"""Called with the return code as in `subprocess`; None if unknown."""

START_PATIENCE = 30.0
"""Seconds for the watcher to start a program: takes milliseconds, but the watcher itself may still be starting."""

_FOLDER = "folder"
"""File name in an `OSError` about the working folder instead of the program."""

_CROWDED = 0.01
"""Seconds until the next try when too many descriptors are in transit to the watcher."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A program to start in its own session."""

    program: str
    command: Sequence[str]
    env: Mapping[str, str]
    cwd: str | None
    streams: tuple[int, int, int]
    """The descriptors for its stdin, stdout and stderr."""


class Child(Protocol):
    @property
    def pid(self) -> int: ...

    def on_exit(self, tell: OnExit) -> None:
        """Call `tell` once, from the running loop, when the child has exited."""

    def kill(self) -> None:
        """Kill the child; has no effect after its end."""


class OwnChild:
    """A child that the gateway itself started."""

    def __init__(self, launch: Launch, env: Mapping[str, str]) -> None:
        stdin, stdout, stderr = launch.streams
        self._process = subprocess.Popen(
            [launch.program, *launch.command[1:]],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=env,
            cwd=launch.cwd,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def on_exit(self, tell: OnExit) -> None:
        on_exit(self._process, tell)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class WatcherLost(Exception):
    """The watcher died during the start of a program; the program may or may not run."""


class WatchedChild:
    """A child of the watcher; created with `start`."""

    def __init__(self, status: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._status = status
        self._heard = b""
        self._started: asyncio.Future[int] = self._loop.create_future()
        self._process: table.Process | None = None
        self._over = False
        self._returncode: int | None = None
        self._tell: OnExit | None = None
        self._loop.add_reader(status, self._read)

    @classmethod
    async def start(
        cls, requests: socket.socket, launch: Launch, marker: str, env: Mapping[str, str]
    ) -> WatchedChild:
        """Ask the watcher to start a program; raises `OSError` or `WatcherLost`."""
        readable, writable = os.pipe()
        try:
            folder = os.open(launch.cwd or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            os.close(readable)
            os.close(writable)
            raise
        os.set_blocking(readable, False)
        child = cls(readable)
        try:
            async with asyncio.timeout(START_PATIENCE):
                await _request(requests, launch, marker, env, writable, folder)
                os.close(writable)
                writable = -1
                pid = await child._started
        except BaseException as error:
            child._close()
            if isinstance(error, TimeoutError | ConnectionError) or requests.fileno() < 0:
                raise WatcherLost from error
            if isinstance(error, OSError) and error.filename == _FOLDER:
                raise OSError(error.errno, error.strerror, launch.cwd) from error
            raise
        finally:
            os.close(folder)
            if writable >= 0:
                os.close(writable)
        child._process = table.process(pid)
        return child

    @property
    def pid(self) -> int:
        return self._started.result()

    def on_exit(self, tell: OnExit) -> None:
        self._tell = tell
        if self._over:
            self._loop.call_soon(tell, self._returncode)

    def kill(self) -> None:
        if self._process is not None:
            table.send(self._process, signal.SIGKILL)

    def _read(self) -> None:
        try:
            data = os.read(self._status, 4096)
        except BlockingIOError:
            return
        if not data:
            self._watcher_gone()
            return
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in lines:
            word, _, number = line.decode().partition(" ")
            self._read_reply(word, int(number))

    def _read_reply(self, word: str, number: int) -> None:
        if word == "exit":
            self._ended(number)
        elif not self._started.done():
            if word == "started":
                self._started.set_result(number)
            else:
                error = OSError(number, os.strerror(number), _FOLDER if word == "nofolder" else None)
                self._started.set_exception(error)

    def _watcher_gone(self) -> None:
        self._close()
        if not self._started.done():
            self._started.set_exception(WatcherLost())
            return
        if self._over or self._started.exception() is not None:
            return
        try:
            descriptor = os.pidfd_open(self.pid)
        except OSError:
            self._ended(None)
            return
        if self._process is None or table.start_of(self.pid) != self._process.start:
            os.close(descriptor)
            self._ended(None)
            return

        def exited() -> None:
            self._loop.remove_reader(descriptor)
            os.close(descriptor)
            self._ended(None)

        self._loop.add_reader(descriptor, exited)

    def _ended(self, returncode: int | None) -> None:
        if self._over:
            return
        self._over = True
        self._returncode = returncode
        self._close()
        if self._tell is not None:
            self._tell(returncode)

    def _close(self) -> None:
        if self._status >= 0:
            self._loop.remove_reader(self._status)
            os.close(self._status)
            self._status = -1


async def _request(
    requests: socket.socket, launch: Launch, marker: str, env: Mapping[str, str], status: int, folder: int
) -> None:
    arguments = [os.fsencode(word) for word in (launch.program, *launch.command[1:])]
    variables = {os.fsencode(name): os.fsencode(value) for name, value in env.items()}
    words = os.memfd_create("words")
    try:
        _write_all(words, Order(marker, os.fsencode(launch.program), arguments, variables).pack())
        while not _send(requests, [status, words, folder, *launch.streams]):  # noqa: ASYNC110 (no event tells)
            await asyncio.sleep(_CROWDED)
    finally:
        os.close(words)


def _send(requests: socket.socket, descriptors: Sequence[int]) -> bool:
    """Send descriptors to the watcher; False if the socket is full."""
    try:
        socket.send_fds(requests, [b"!"], descriptors)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.ETOOMANYREFS):
            return False
        raise
    return True


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
