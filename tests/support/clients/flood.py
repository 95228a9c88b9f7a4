"""A flood beside a running server, and how long its probe is waited for meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

from support.rpc_peer import PATIENCE
from support.serve_process import ServeProcess

PROGRAM = Path(__file__).with_name("flood_program.py")
PROBE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@contextlib.asynccontextmanager
async def flooded(
    serving: ServeProcess, kind: str, connections: int = 1, seconds: float = 60.0
) -> AsyncIterator[None]:
    """Floods it from another process, at most for so many seconds."""
    arguments = [kind, str(serving.port), serving.token, str(connections), str(seconds)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(PROGRAM), *arguments, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            assert await process.stdout.readline() == b"flooding\n"
        yield
        assert process.returncode is None, "the flood ended early"
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def probe(port: int) -> float:
    """Seconds until `/healthz` has answered on a connection of its own."""
    begun = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        connection.sendall(PROBE)
        answer = b""
        while data := connection.recv(4096):
            answer += data
    assert answer.startswith(b"HTTP/1.1 200"), answer[:80]
    return time.perf_counter() - begun


def probe_for(port: int, seconds: float, pause: float = 0.005) -> list[float]:
    """How long each of many took, the shortest first; blocks."""
    end = time.perf_counter() + seconds
    taken = []
    while time.perf_counter() < end:
        taken.append(probe(port))
        time.sleep(pause)
    return sorted(taken)


def percentile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
