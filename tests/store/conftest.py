"""Fixtures: a store in a fresh folder, and other processes that share it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.store import FileStore
from support.store.store_process import StoreProcess

StartPeer = Callable[..., Awaitable[StoreProcess]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "dragoman.db"


@pytest.fixture
def runtime(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.fixture
async def store(path: Path, runtime: Path) -> AsyncIterator[FileStore]:
    opened = await FileStore.open(path, runtime)
    yield opened
    await opened.close()


@pytest.fixture
async def peer(path: Path, runtime: Path) -> AsyncIterator[StartPeer]:
    """Start another process with the same store open: `other = await peer()`."""
    started: list[StoreProcess] = []

    async def start(at: Path = path, **options: Any) -> StoreProcess:
        started.append(await StoreProcess.start(at, runtime, **options))
        return started[-1]

    yield start
    for one in started:
        await one.kill()
