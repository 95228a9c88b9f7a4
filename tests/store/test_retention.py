"""What is removed for its age or size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman.gateway.lifecycle.retention import expire, prune
from dragoman.gateway.ports.store import Lease, Removed, SessionChanges, StoredSession
from dragoman.store import FileStore
from support.store.store_process import append, begin, numbered, read_all, record

KILOBYTES = 100


async def history(store: FileStore, count: int) -> None:
    """Closed sessions 0 (oldest) and on, each with two events."""
    for n in range(count):
        session = await begin(store, f"{n}", minute=n, title=f"Talk {n}")
        assert await append(store, session, 1, [b"x" * 50_000] * 2) is None
        await store.release(session, 1)


async def size_of(store: FileStore) -> int:
    return sum(session.bytes for session in await store.stored())


async def test_expiry_deletes_sessions_not_touched_since(store: FileStore) -> None:
    await history(store, 4)
    size = await size_of(store) // 4
    assert 100_000 < size < 100_200
    removed = await expire(store, record(minute=2).updated_at)
    assert removed == [Removed("dgm_0", "Talk 0", 2, size), Removed("dgm_1", "Talk 1", 2, size)]
    assert [one.id for one in (await store.list()).records] == ["dgm_3", "dgm_2"]


async def test_pruning_by_size_empties_the_oldest_journals_first(store: FileStore) -> None:
    await history(store, 5)
    removed = await prune(store, 250_000)
    assert [one.session_id for one in removed] == ["dgm_0", "dgm_1", "dgm_2"]
    assert 200_000 < await size_of(store) < 200_400
    found = await store.get("dgm_0")
    assert found is not None
    assert (found.first_seq, found.last_seq, found.title) == (3, 2, "Talk 0")
    assert await prune(store, 250_000) == []


async def test_numbering_goes_on_after_pruning(store: FileStore) -> None:
    await history(store, 1)
    await prune(store, 0)
    assert await store.read("dgm_0", 0, 100) == []
    assert await store.acquire("dgm_0") == Lease("dgm_0", 2, 2)
    assert await append(store, "dgm_0", 3, [b"on"], epoch=2) is None
    assert numbered(await read_all(store, "dgm_0")) == {3: b"on"}
    assert numbered(await store.read_before("dgm_0", 100, 10)) == {3: b"on"}


async def test_sessions_with_a_living_owner_are_never_touched(store: FileStore, peer: Any) -> None:
    other = await peer()
    await other.hear()
    await history(store, 2)
    await other.ask("acquire", "dgm_0")
    await store.acquire("dgm_1")
    assert await prune(store, 0) == []
    assert await expire(store, "9999") == []
    await other.kill()
    assert [one.session_id for one in await expire(store, "9999")] == ["dgm_0"]


async def test_space_is_given_back_to_the_disk(path: Path, runtime: Path) -> None:
    store = await FileStore.open(path, runtime)
    await history(store, 40)
    await prune(store, 0)
    await store.close()
    assert sum(file.stat().st_size for file in path.parent.rglob("*") if file.is_file()) < 300_000


async def test_a_session_that_cannot_be_removed_does_not_keep_the_others(
    store: FileStore, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await history(store, 3)
    newer = path.parent / "journal" / "dgm_0" / "000000000003-1.log"
    newer.write_text("#dragoman journal 7 dgm_0\nin words of the future\n")
    assert [one.session_id for one in await prune(store, 0)] == ["dgm_1", "dgm_2"]
    assert [one.session_id for one in await expire(store, "9999")] == ["dgm_1", "dgm_2"]
    assert newer.exists()
    assert {vars(line)["session"] for line in caplog.records} == {"dgm_0"}


async def test_a_session_used_since_the_list_was_made_stays(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await history(store, 2)
    listed = await store.stored()

    async def stored(older_than: str | None = None) -> list[StoredSession]:
        return listed

    monkeypatch.setattr(store, "stored", stored)
    store.update("dgm_0", 1, SessionChanges(updated_at=record(minute=30).updated_at))
    assert [one.session_id for one in await prune(store, 0)] == ["dgm_1"]
    assert [one.session_id for one in await expire(store, "9999")] == ["dgm_1"]
