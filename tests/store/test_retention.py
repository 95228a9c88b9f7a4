"""What is removed for its age or size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dragoman.gateway.ports.store import Removed
from dragoman.store import SqliteStore
from support.store import append, begin, numbered, read_all, record

KILOBYTES = 100


async def history(store: SqliteStore, count: int) -> None:
    """Closed sessions 0 (oldest) and on, each with two events."""
    for n in range(count):
        session = await begin(store, f"{n}", minute=n, title=f"Talk {n}")
        assert await append(store, session, 1, [b"x" * 50_000] * 2) is None
        await store.release(session, 1)


async def test_expiry_deletes_sessions_not_touched_since(store: SqliteStore) -> None:
    await history(store, 4)
    removed = await store.expire(record(minute=2).updated_at)
    assert removed == (Removed("dgm_0", "Talk 0", 2, 100_000), Removed("dgm_1", "Talk 1", 2, 100_000))
    assert [one.id for one in (await store.list()).records] == ["dgm_3", "dgm_2"]


async def test_pruning_by_size_empties_the_oldest_journals_first(store: SqliteStore) -> None:
    await history(store, 5)
    removed = await store.prune(max_bytes=250_000)
    assert [one.session_id for one in removed] == ["dgm_0", "dgm_1", "dgm_2"]
    assert (await store.usage()).journal_bytes == 200_000
    found = await store.get("dgm_0")
    assert found is not None
    assert (found.first_seq, found.last_seq, found.title) == (3, 2, "Talk 0")
    assert await store.prune(max_bytes=250_000) == ()


async def test_numbering_goes_on_after_pruning(store: SqliteStore) -> None:
    await history(store, 1)
    await store.prune(max_bytes=0)
    assert await store.read("dgm_0", 0, 100) == []
    await store.acquire("dgm_0")
    assert await append(store, "dgm_0", 3, [b"on"], epoch=2) is None
    assert numbered(await read_all(store, "dgm_0")) == {3: b"on"}
    assert numbered(await store.read_before("dgm_0", 100, 10)) == {3: b"on"}


async def test_pruning_by_age_leaves_newer_journals(store: SqliteStore) -> None:
    await history(store, 3)
    removed = await store.prune(older_than=record(minute=1).updated_at)
    assert [one.session_id for one in removed] == ["dgm_0"]


async def test_sessions_with_a_living_owner_are_never_touched(store: SqliteStore, peer: Any) -> None:
    other = await peer()
    await other.hear()
    await history(store, 2)
    await other.ask("acquire", "dgm_0")
    await store.acquire("dgm_1")
    assert await store.prune(max_bytes=0) == ()
    assert await store.expire("9999") == ()
    await other.kill()
    assert [one.session_id for one in await store.expire("9999")] == ["dgm_0"]


async def test_space_is_given_back_to_the_disk(path: Path, runtime: Path) -> None:
    store = await SqliteStore.open(path, runtime)
    await history(store, 40)
    await store.prune(max_bytes=0)
    await store.close()
    assert path.stat().st_size < 300_000
