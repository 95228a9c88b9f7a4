"""Dragoman processes forked from a parent that has loaded everything, see `processes/fork_server_program.py`."""

from __future__ import annotations

import asyncio
import atexit
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

SCRIPT = Path(__file__).parent / "processes" / "fork_server_program.py"
PATIENCE = 20.0


class ForkedProcess:
    """A process: what `asyncio.subprocess.Process` offers, as far as it is needed."""

    def __init__(self, pid: int, channel: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdin: asyncio.StreamWriter
        self.stdout: asyncio.StreamReader
        self.stderr: asyncio.StreamReader
        self._channel = channel
        self._end = asyncio.create_task(self._wait_for_exit())

    async def _wait_for_exit(self) -> int:
        news, channel = self._channel
        self.returncode = int(await news.readline())
        channel.close()
        return self.returncode

    async def wait(self) -> int:
        return await asyncio.shield(self._end)

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):  # it ended by itself, and its exit code is on the way
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


async def start_forked(
    program: str,
    arguments: Sequence[str],
    env: Mapping[str, str],
    cwd: Path,
    limit: int,
    *,
    piped_stderr: bool = True,
) -> ForkedProcess:
    """Start `gateway` or `builtin`; its stderr is ours unless it is `piped_stderr`."""
    path = await asyncio.to_thread(_fork_server, program)
    their_stdin, stdin = os.pipe()
    stdout, their_stdout = os.pipe()
    stderr, their_stderr = os.pipe() if piped_stderr else (None, os.dup(sys.stderr.fileno()))
    theirs = (their_stdin, their_stdout, their_stderr)
    request = {"arguments": list(arguments), "env": dict(env), "cwd": str(cwd)}
    channel = await asyncio.open_unix_connection(path)
    with channel[1].get_extra_info("socket").dup() as raw:
        socket.send_fds(raw, [json.dumps(request).encode()], theirs)
    for descriptor in theirs:
        os.close(descriptor)
    process = ForkedProcess(int(await channel[0].readline()), channel)
    process.stdin = await _writer(stdin)
    process.stdout = await _reader(stdout, limit)
    if stderr is not None:
        process.stderr = await _reader(stderr, limit)
    return process


def run_forked(
    program: str,
    arguments: Sequence[str],
    env: Mapping[str, str],
    cwd: Path,
    stdin: bytes | None,
    timeout: float,
) -> subprocess.CompletedProcess[bytes]:
    """As `subprocess.run`; without `stdin` it reads an empty one."""
    given, out, err = os.pipe(), os.pipe(), os.pipe()
    theirs = (given[0], out[1], err[1])
    request = {"arguments": list(arguments), "env": dict(env), "cwd": str(cwd)}
    with socket.socket(socket.AF_UNIX) as channel, ThreadPoolExecutor(3) as threads:
        channel.connect(_fork_server(program))
        socket.send_fds(channel, [json.dumps(request).encode()], theirs)
        for descriptor in theirs:
            os.close(descriptor)
        news = channel.makefile("rb")
        pid = int(news.readline())
        threads.submit(_write_all, given[1], stdin or b"")
        stdout, stderr = (threads.submit(_read_all, pipe[0]) for pipe in (out, err))
        channel.settimeout(timeout)
        try:
            code = int(news.readline())
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise
        return subprocess.CompletedProcess(list(arguments), code, stdout.result(), stderr.result())


def _write_all(descriptor: int, data: bytes) -> None:
    with suppress(BrokenPipeError), os.fdopen(descriptor, "wb") as pipe:
        pipe.write(data)


def _read_all(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as pipe:
        return pipe.read()


async def _reader(descriptor: int, limit: int) -> asyncio.StreamReader:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=limit, loop=loop)
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader, loop=loop), os.fdopen(descriptor, "rb", 0)
    )
    return reader


async def _writer(descriptor: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    unused = asyncio.StreamReader(loop=loop)
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(unused, loop=loop), os.fdopen(descriptor, "wb", 0)
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)


def share_fork_servers() -> None:
    """One fork server per program for this process and its children: for the one that distributes tests."""
    for program in ("gateway", "builtin"):
        os.environ[_variable(program)] = _fork_server(program)


def _variable(program: str) -> str:
    return f"TESTS_FORK_SERVER_{program.upper()}"


@functools.cache
def _fork_server(program: str) -> str:
    """The path of its socket; started once, and ended with the process that started it."""
    if shared := os.environ.get(_variable(program)):
        return shared
    folder = tempfile.mkdtemp(prefix="dgm-")
    path = os.path.join(folder, "s")
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), program, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
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
