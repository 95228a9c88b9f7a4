"""Built-in agents that start at once, see `processes/nursery.py`."""

from __future__ import annotations

import asyncio
import atexit
import functools
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from support.rpc_peer import PATIENCE

SCRIPT = Path(__file__).parent / "processes" / "nursery.py"


class Nursling:
    """An agent's process: what `asyncio.subprocess.Process` offers, as far as it is needed."""

    def __init__(
        self, pid: int, news: asyncio.StreamReader, channels: Sequence[asyncio.StreamWriter]
    ) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._news = news
        self._channels = channels

    async def wait(self) -> int:
        if self.returncode is None:
            self.returncode = int(await self._news.readline())
            for channel in self._channels:
                channel.close()
        return self.returncode


async def start_warm(
    arguments: Sequence[str], env: Mapping[str, str], cwd: Path, limit: int
) -> tuple[Nursling, asyncio.StreamReader, asyncio.StreamWriter]:
    """A process that runs the built-in agent, and its stdout and stdin."""
    path = await asyncio.to_thread(_nursery)
    stdin, their_stdin = socket.socketpair()  # sockets, as Node gives them to its children
    stdout, their_stdout = socket.socketpair()
    request = {"arguments": list(arguments), "env": dict(env), "cwd": str(cwd)}
    news, channel = await asyncio.open_unix_connection(path)
    with their_stdin, their_stdout, channel.get_extra_info("socket").dup() as raw:
        ends = [their_stdin.fileno(), their_stdout.fileno(), sys.stderr.fileno()]
        socket.send_fds(raw, [json.dumps(request).encode()], ends)
    pid = int(await news.readline())
    _, writer = await asyncio.open_connection(sock=stdin)
    reader, unused = await asyncio.open_connection(sock=stdout, limit=limit)
    return Nursling(pid, news, (channel, unused)), reader, writer


@functools.cache
def _nursery() -> str:
    """Started once per test process, and ended with it."""
    folder = tempfile.mkdtemp(prefix="dgm-")
    path = os.path.join(folder, "s")
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin and process.stdout

    def end() -> None:
        assert process.stdin
        process.stdin.close()
        process.wait(PATIENCE)
        os.unlink(path)
        os.rmdir(folder)

    atexit.register(end)
    assert process.stdout.readline() == b"ready\n"
    return path
