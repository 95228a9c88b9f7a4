"""Sockets in folders that are too deep for the kernel."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dragoman.machine import MAX_SOCKET_PATH, short_path

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")


async def test_a_socket_in_a_deep_folder_can_be_listened_on_and_reached(tmp_path: Path) -> None:
    folder = tmp_path / ("deep" * 20) / ("deeper" * 20)
    folder.mkdir(parents=True)
    path = folder / "owner.sock"
    assert len(str(path)) > MAX_SOCKET_PATH
    greeted = asyncio.Event()

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        greeted.set()
        writer.close()

    with short_path(path) as name:
        server = await asyncio.start_unix_server(greet, name)
    assert path.is_socket()
    with short_path(path) as name:
        _, writer = await asyncio.open_unix_connection(name)
    async with asyncio.timeout(10):
        await greeted.wait()
    writer.close()
    server.close()


def test_a_short_path_is_used_as_it_is(tmp_path: Path) -> None:
    with short_path(Path("/run/x.sock")) as name:
        assert name == "/run/x.sock"
