"""Sessions of the store as a gateway lists them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from unittest.mock import AsyncMock, Mock

import pytest

from dragoman.cli.sessions.state import look
from dragoman.gateway.delivery import events
from dragoman.gateway.delivery.transcript import RECENT_EVENTS
from dragoman.gateway.ownership.directory import StoreDirectory
from dragoman.store import FileStore
from support.store.store_process import append, begin


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
async def store(state: Path, tmp_path: Path) -> AsyncIterator[FileStore]:
    opened = await FileStore.open(state / "dragoman.db", tmp_path / "run")
    yield opened
    await opened.close()


async def left(store: FileStore, name: str, said: list[bytes], minute: int = 0, state: str = "idle") -> str:
    """A session whose process died: not given back, and not locked."""
    session = await begin(store, name, minute=minute, state=state)
    assert await append(store, session, 1, said) is None
    store._owned.pop(session).close()
    return session


async def states(store: FileStore) -> dict[str, str]:
    page = await StoreDirectory(store, 1.0).list(cwd=None, agent=None, cursor=None)
    return {each.id: each.state for each in page.sessions}


async def test_a_session_that_cannot_be_examined_is_listed_with_the_others(
    store: FileStore, state: Path, caplog: pytest.LogCaptureFixture
) -> None:
    newer = await left(store, "newer", [b"P1"], minute=1)
    locked = await left(store, "locked", [b"P1"], minute=2)
    fine = await left(store, "fine", [b"P1"], minute=3)
    (state / "journal" / newer / "000000000002-1.log").write_text(f"#dragoman journal 7 {newer}\nfuture\n")
    lock = state / "journal" / locked / "lock"
    lock.unlink()
    os.symlink(lock, lock)  # cannot be opened, not even by root
    assert await states(store) == {fine: "interrupted", locked: "idle", newer: "idle"}
    assert {vars(line)["session"] for line in caplog.records} == {newer, locked}


async def test_the_command_line_judges_a_dead_session_as_the_gateway_does(store: FileStore) -> None:
    behind = await left(store, "behind", [b"P1"], minute=1)
    ended = await left(store, "ended", [b"P1", events.record("turn_ended")], minute=2, state="working")
    expected = {ended: "idle", behind: "interrupted"}
    assert await states(store) == expected
    views = await look(store, (await store.list()).records)
    assert {view.record.id: view.state for view in views} == expected


async def test_taking_a_session_reads_one_page_of_its_journal(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = await left(store, "long", [b"U"] * 3 * RECENT_EVENTS)
    read = AsyncMock(wraps=store.read_before)
    monkeypatch.setattr(store, "read_before", read)
    session = Mock(id=long, remote=False)
    session.feed.attachments = []
    assert await StoreDirectory(store, 1.0).own(session) is None
    assert read.await_count == 1
