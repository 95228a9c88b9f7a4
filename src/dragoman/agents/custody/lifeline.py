"""The gateway's end of the pipe to its watcher."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from dragoman.agents.custody.exits import on_exit
from dragoman.agents.custody.table import HAS_PIDFD
from dragoman.agents.environment import inherited

WATCHER = Path(__file__).with_name("watcher.py")

WATCHER_STARTS = HAS_PIDFD and hasattr(os, "memfd_create") and hasattr(socket, "MSG_CMSG_CLOEXEC")
"""Whether the watcher starts the agents: on Linux, where it can adopt orphans."""


class CustodyError(Exception):
    """An agent started now would outlive the gateway; the message is a sentence for the user."""


class Lifeline:
    """One watcher process, and the pipe whose closing tells it that the gateway is gone.

    The pipe is written directly, not through the loop: a registration must be in the kernel before the agent
    starts. Both ends are close-on-exec, so that no agent keeps the pipe open after our death. (Between fork
    and exec a child does keep it open, which closes the last gap: the watcher notices our death only when
    the child can be found.)
    """

    def __init__(
        self, on_death: Callable[[Lifeline], None], lines: Iterable[str] = (), record: int = -1
    ) -> None:
        """`record` is the descriptor of the gateway's record, which the watcher inherits."""
        self._on_death = on_death
        self._gone = asyncio.Event()
        self._watcher: subprocess.Popen[bytes] | None = None
        self.requests: socket.socket | None = None
        """The socket for requests to start programs; None unless `WATCHER_STARTS`."""
        readable, self._pipe = os.pipe()
        os.set_blocking(self._pipe, False)
        for line in lines:  # before it starts, so that none is missed; a pipe holds over a thousand
            self.tell(line)
        try:
            self._watcher = self._start(readable, record)
        except OSError as error:
            self.hang_up()
            raise CustodyError(f"The watcher process could not be started: {error.strerror}.") from error
        finally:
            os.close(readable)
        on_exit(self._watcher, self._exited)

    @property
    def pid(self) -> int | None:
        return self._watcher.pid if self._watcher is not None else None

    @property
    def alive(self) -> bool:
        return self._pipe >= 0 and not self._gone.is_set()

    def tell(self, line: str) -> bool:
        """Write one line atomically (PIPE_BUF); returns False if the watcher is dead or stuck."""
        if not self.alive:
            return False
        try:
            os.write(self._pipe, line.encode() + b"\n")
        except BrokenPipeError:
            self.hang_up()  # it died; `_exited` will be called
            return False
        except BlockingIOError:
            self.kill()  # over a thousand lines unread: stopped or stuck
            return False
        return True

    def hang_up(self) -> None:
        """Close the pipe: the watcher ends all registered trees, then exits."""
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
        if self.requests is not None:
            self.requests.close()
            self.requests = None

    def kill(self) -> None:
        """Kill the watcher; it does not end its trees then."""
        if self._watcher is not None:
            self._watcher.kill()
        self.hang_up()

    async def wait_gone(self) -> None:
        await self._gone.wait()

    def _exited(self, _returncode: int | None) -> None:
        self.hang_up()
        self._gone.set()
        self._on_death(self)

    def _start(self, stdin: int, record: int) -> subprocess.Popen[bytes]:
        if not WATCHER_STARTS:
            return _start_watcher(stdin, [], [])
        self.requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.requests.setblocking(False)
        with theirs:
            shared = [theirs.fileno(), *([record] if record >= 0 else [])]
            return _start_watcher(stdin, [str(theirs.fileno()), str(record)], shared)


def _start_watcher(stdin: int, arguments: list[str], shared: list[int]) -> subprocess.Popen[bytes]:
    # Its own session: signals to the editor's group or terminal do not reach it. The root folder: it keeps no
    # mount busy. No output: the gateway's stdout belongs to the client, which waits for its end.
    # -I and -S: only the stdlib is loaded, and nothing from the current folder.
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(WATCHER), *arguments],
        stdin=stdin,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
        env=inherited(os.environ),
        pass_fds=shared,
    )
