"""Contenders that listen: each brings the bench agent to a port of this machine."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import installs
from bench.contenders import AGENT, DRAGOMAN, PLAIN, Arena
from bench.peers.talk import ConversationError

START_TIMEOUT = 20.0
END_TIMEOUT = 12.0

ACPREMOTE = "acpremote"
STDIO_TO_WS = "stdio-to-ws"
ACP_SERVER = "AcpServer"


@dataclass(frozen=True)
class Server:
    """A running contender: where it listens, the token it wants, its process."""

    url: str
    token: str
    pid: int


Command = Callable[[int], list[str]]

OTHERS: dict[str, tuple[Command, str]] = {
    ACPREMOTE: (
        lambda port: [*installs.acpremote(), "expose", "--port", str(port), "--", *AGENT],
        "/acp/ws",
    ),
    STDIO_TO_WS: (
        lambda port: [*installs.stdio_to_ws(), "--quiet", "--port", str(port), " ".join(AGENT)],
        "/",
    ),
    ACP_SERVER: (
        lambda port: [
            *installs.python_sdk_server(),
            str(installs.RELAYS / "python_sdk_http.py"),
            str(port),
        ],
        "/acp",
    ),
}


@contextmanager
def dragoman_serve(arena: Arena, *, journal: bool, name: str, agent: str = "bench") -> Iterator[Server]:
    """`dragoman serve` in a home of its own: one per home is all there may be."""
    program = Path(sys.executable).parent / "dragoman"
    home = arena.home(journal=journal, name=name)
    command = [str(program), "serve", "--port", "0", "--agent", agent, "--log-level", "warning"]
    with _process(command, arena.environment(home), arena.workspace, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        found = re.match(r"http://([^/]+)/\?token=(\S+)", line)
        if found is None:
            raise ConversationError(f"dragoman serve did not start: {line!r}")
        yield Server(f"http://{found[1]}/acp", found[2], process.pid)


@contextmanager
def other_server(arena: Arena, name: str) -> Iterator[Server]:
    command, path = OTHERS[name]
    port = free_port()
    with _process(
        command(port), arena.environment(arena.home()), arena.workspace, subprocess.DEVNULL
    ) as process:
        _wait_for(port, process, name)
        yield Server(f"http://127.0.0.1:{port}{path}", "", process.pid)


@contextmanager
def serving(arena: Arena, contender: str, row: str) -> Iterator[Server]:
    """The contender that a probe is named after."""
    if contender in (DRAGOMAN, PLAIN):
        with dragoman_serve(arena, journal=contender == DRAGOMAN, name=f"{row}-{contender}") as server:
            yield server
    else:
        with other_server(arena, contender) as server:
            yield server


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _process(
    command: list[str], env: dict[str, str], cwd: Path, stdout: int
) -> Iterator[subprocess.Popen[bytes]]:
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=stdout, stderr=errors,
            start_new_session=True,
        )  # fmt: skip
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(END_TIMEOUT)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if process.stdout is not None:
                process.stdout.close()


def _wait_for(port: int, process: subprocess.Popen[bytes], name: str) -> None:
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise ConversationError(f"{name} ended with exit code {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise ConversationError(f"{name} does not listen on port {port}")
