"""Writers killed at random moments lose nothing that they acknowledged."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from dragoman.store import FileStore
from support.store.store_process import numbered, read_all, record


@pytest.mark.parametrize("rounds", [5, pytest.param(15, marks=pytest.mark.long)])
async def test_no_acknowledged_event_is_lost_or_doubled_when_the_writer_is_killed(
    path: Path, runtime: Path, peer: Any, rounds: int
) -> None:
    sessions = [f"dgm_{n}" for n in range(3)]
    store = await FileStore.open(path, runtime)
    for session in sessions:
        await store.create(record(session.removeprefix("dgm_")))
    await store.close()
    acknowledged = dict.fromkeys(sessions, 0)
    for _ in range(rounds):
        await _stream_and_kill(peer, acknowledged)
        store = await FileStore.open(path, runtime)
        for session in sessions:
            found = numbered(await read_all(store, session))
            assert list(found) == list(range(1, len(found) + 1))
            assert all(event == f"{session}:{seq}:".encode() * 8 for seq, event in found.items())
            assert len(found) >= acknowledged[session]
            assert await store.last_seq(session) == len(found)
        await store.close()


async def _stream_and_kill(peer: Any, acknowledged: dict[str, int]) -> None:
    writer = await peer()
    await writer.hear()
    writer.tell("stream", *acknowledged)
    heard = [await writer.hear() for _ in range(random.randint(1, 600))]
    heard += await writer.kill()
    for session, last in heard:
        acknowledged[session] = max(acknowledged[session], last)
