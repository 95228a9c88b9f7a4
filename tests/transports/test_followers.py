"""Followers are sent what their command prints, as far as they read it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dragoman.transports.followers import SocketFollower, SocketFollowers
from dragoman.wire import limits
from support.waiting import until

PIECE = "x" * (limits.FOLLOWER_BYTES // 2)


@pytest.fixture
async def followers(tmp_path: Path) -> AsyncIterator[SocketFollowers]:
    made = SocketFollowers(lambda: tmp_path)
    yield made
    await made.close()


async def start(follower: SocketFollower) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """As `follow.py` does."""
    reader, writer = await asyncio.open_unix_connection(follower.args[-2], limit=1024)
    writer.write(f"{follower.id}\n".encode())
    await until(lambda: follower.connected)
    return reader, writer


async def read(reader: asyncio.StreamReader, size: int) -> bytes:
    return b"".join([await reader.readexactly(int(await reader.readline())) for _ in range(size)])


async def test_what_was_left_out_is_said_where_it_is_missing(followers: SocketFollowers) -> None:
    follower = followers.open()
    assert follower is not None
    reader, writer = await start(follower)
    sent = 0
    while not follower.left_out:
        follower.write(PIECE)
        sent += 1
    assert await read(reader, sent - 1) == PIECE.encode() * (sent - 1)
    follower.write("after")
    follower.end(0)
    assert await read(reader, 2) == f"[{len(PIECE)} bytes of output left out]\nafter".encode()
    assert await reader.readline() == b"=0\n"
    writer.close()


async def test_a_follower_whose_terminal_was_closed_costs_no_log_lines(
    followers: SocketFollowers, caplog: pytest.LogCaptureFixture
) -> None:
    follower = followers.open()
    assert follower is not None
    _, writer = await start(follower)
    writer.transport.abort()
    with caplog.at_level(logging.WARNING):
        for _ in range(20):
            follower.write("more")
            await asyncio.sleep(0)
        follower.end(0)
    assert follower.closed
    assert not caplog.records
