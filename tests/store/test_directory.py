"""Records of sessions, and lists of them."""

from __future__ import annotations

import asyncio
import base64
import sqlite3
from pathlib import Path

import pytest
from msgspec import structs

from dragoman import machine
from dragoman.gateway.ports.store import (
    BadCursor,
    BadEvent,
    Fenced,
    Lease,
    SessionChanges,
    SessionExists,
    StoreError,
    UnknownSession,
)
from dragoman.store import FileStore
from support.store.store_process import BOUND, append, begin, record


async def update(store: FileStore, session: str, epoch: int, changes: SessionChanges) -> StoreError | None:
    outcome: asyncio.Future[StoreError | None] = asyncio.get_running_loop().create_future()
    store.update(session, epoch, changes, outcome.set_result)
    return await asyncio.wait_for(outcome, BOUND)


async def ids(store: FileStore, **filters: str | int | None) -> list[str]:
    """The whole list, page by page."""
    found: list[str] = []
    cursor = None
    while True:
        page = await store.list(cursor=cursor, **filters)  # type: ignore[arg-type]
        found += [one.id for one in page.records]
        cursor = page.next_cursor
        if cursor is None:
            return found


async def test_a_record_comes_back_as_it_was_stored(store: FileStore) -> None:
    made = record(
        "full",
        agent_session_id="theirs",
        additional_directories=("/a", "/ü"),
        sandbox="box",
        title="A title",
        forked_from="dgm_other",
        extra={"mode": "code", "nested": [1, None, {"x": 2.5}]},
    )
    await store.create(made)
    made = structs.replace(made, node=machine.node())
    assert await store.get(made.id) == made
    assert await store.find("scripted", "theirs") == made
    assert await store.find("other", "theirs") is None
    assert await store.get("dgm_nowhere") is None


async def test_changes_touch_only_the_fields_they_name(store: FileStore) -> None:
    session = await begin(store, title="old", sandbox="box")
    assert (
        await update(store, session, 1, SessionChanges(title=None, extra={"a": 1}, state="working")) is None
    )
    found = await store.get(session)
    assert found is not None
    assert (found.title, found.extra, found.state, found.sandbox) == (None, {"a": 1}, "working", "box")


async def test_changes_of_a_former_owner_are_refused(store: FileStore) -> None:
    session = await begin(store, title="kept")
    assert isinstance(await update(store, session, 0, SessionChanges(title="lost")), Fenced)
    assert isinstance(await update(store, "dgm_x", 1, SessionChanges(title="lost")), UnknownSession)
    found = await store.get(session)
    assert found is not None
    assert found.title == "kept"


async def test_an_id_that_is_given_again_costs_the_first_session_nothing(store: FileStore) -> None:
    session = await begin(store)
    await append(store, session, 1, [b"kept"])
    await store.release(session, 1)
    with pytest.raises(SessionExists):
        await begin(store)
    lease = await store.acquire(session)
    assert isinstance(lease, Lease) and lease.last_seq == 1
    assert [row.data for row in await store.read(session, 0, 1000)] == [b"kept"]


async def test_an_id_is_given_once(store: FileStore) -> None:
    await store.create(record("one", agent_session_id="theirs"))
    with pytest.raises(SessionExists):
        await store.create(record("one"))
    with pytest.raises(SessionExists):
        await store.create(record("two", agent_session_id="theirs"))
    assert await store.get("dgm_two") is None
    await store.create(record("two", agent="other", agent_session_id="theirs"))
    await store.create(record("three"))
    refusal = await update(store, "dgm_three", 0, SessionChanges(agent_session_id="theirs"))
    assert isinstance(refusal, SessionExists)


async def test_text_that_cannot_be_stored_is_refused_and_the_writer_goes_on(store: FileStore) -> None:
    with pytest.raises(BadEvent):
        await store.create(record("bad", title="\ud800"))
    session = await begin(store)
    assert isinstance(await update(store, session, 1, SessionChanges(title="\ud800")), BadEvent)
    assert await append(store, session, 1, [b"fine"]) is None


async def test_the_list_is_newest_first_and_filtered(store: FileStore) -> None:
    for n in range(10):
        cwd, agent = ("/a" if n % 2 else "/b"), ("x" if n < 5 else "y")
        await store.create(record(f"{n}", n, cwd=cwd, agent=agent, title=f"Talk 100% of {n}_"))
    assert await ids(store, limit=3) == [f"dgm_{n}" for n in range(9, -1, -1)]
    assert await ids(store, cwd="/a", limit=2) == ["dgm_9", "dgm_7", "dgm_5", "dgm_3", "dgm_1"]
    assert await ids(store, cwd="/a", agent="x") == ["dgm_3", "dgm_1"]
    assert await ids(store, query="100% OF 4_") == ["dgm_4"]
    assert await ids(store, query="%4") == []
    assert await ids(store, cwd="/nowhere") == []


async def test_sessions_updated_in_the_same_moment_are_all_listed_once(store: FileStore) -> None:
    for n in range(25):
        await store.create(record(f"{n}", 7))
    assert sorted(await ids(store, limit=4)) == sorted(f"dgm_{n}" for n in range(25))


async def test_a_cursor_survives_inserts_deletions_and_updates(store: FileStore) -> None:
    for n in range(20):
        await store.create(record(f"{n}", n))
    first = await store.list(limit=5)
    assert [one.id for one in first.records] == [f"dgm_{n}" for n in range(19, 14, -1)]
    await store.create(record("newer", 100))
    await store.create(record("between", 10))
    await store.delete("dgm_15")
    assert await update(store, "dgm_19", 0, SessionChanges(updated_at=record(minute=99).updated_at)) is None
    rest = await store.list(limit=100, cursor=first.next_cursor)
    assert [one.id for one in rest.records] == [
        *(f"dgm_{n}" for n in (14, 13, 12, 11)), "dgm_between", *(f"dgm_{n}" for n in range(10, -1, -1))
    ]  # fmt: skip


async def test_a_cursor_of_another_list_is_refused(store: FileStore, tmp_path: Path) -> None:
    for n in range(5):
        await store.create(record(f"{n}", n))
    cursor = (await store.list(limit=2)).next_cursor
    assert cursor is not None
    with pytest.raises(BadCursor):
        await store.list(limit=2, cursor=cursor, cwd="/project")
    other = await FileStore.open(tmp_path / "other.db", tmp_path / "run")
    with pytest.raises(BadCursor):
        await other.list(cursor=cursor)
    await other.close()


@pytest.mark.parametrize(
    "garbage", ["", "x", "!!", "ü", "A" * 2000, base64.b64encode(b"12345678[]").decode()]
)
async def test_a_garbage_cursor_is_refused(store: FileStore, garbage: str) -> None:
    with pytest.raises(BadCursor):
        await store.list(cursor=garbage)


async def test_every_changed_character_of_a_cursor_is_noticed(store: FileStore) -> None:
    for n in range(3):
        await store.create(record(f"{n}", n))
    cursor = (await store.list(limit=1)).next_cursor
    assert cursor is not None
    for at in range(len(cursor) - 1):  # bits of the last character may be padding
        with pytest.raises(BadCursor):
            await store.list(cursor=cursor[:at] + ("A" if cursor[at] != "A" else "B") + cursor[at + 1 :])


@pytest.mark.parametrize(
    "filters", ["", "WHERE cwd = '/a'", "WHERE agent = 'x'", "WHERE (updated_at, n) < ('z', 1)"]
)
async def test_a_page_is_walked_along_an_index_and_never_sorted(
    store: FileStore, path: Path, filters: str
) -> None:
    connection = sqlite3.connect(path)
    query = f"SELECT * FROM directory {filters} ORDER BY updated_at DESC, n DESC LIMIT 51"
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}")]
    connection.close()
    assert "USING INDEX directory_" in plan[0], plan
    assert not any("TEMP B-TREE" in step for step in plan), plan


async def test_deletion_takes_the_journal_along(store: FileStore) -> None:
    session = await begin(store)
    await append(store, session, 1, [b"secret"])
    assert await store.delete(session) is True
    assert await store.delete(session) is False
    assert await store.stored() == []
    assert isinstance(await append(store, session, 2, [b"late"]), Fenced)
    await begin(store, "next")
    assert await store.read("dgm_next", 0, 100) == []
