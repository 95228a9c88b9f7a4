"""Appends, and reading them back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman.gateway.ports.store import (
    BadEvent,
    Fenced,
    SequenceGap,
    StoreClosed,
    StoreError,
    UnknownSession,
)
from dragoman.store import SqliteStore, limits
from support.store import BOUND, append, begin, numbered, read_all


async def test_what_was_appended_is_read_back_with_its_numbers(store: SqliteStore) -> None:
    session = await begin(store)
    assert await append(store, session, 1, [b"a", b"b"]) is None
    assert await append(store, session, 3, [b"c"]) is None
    assert numbered(await read_all(store, session)) == {1: b"a", 2: b"b", 3: b"c"}
    assert await store.last_seq(session) == 3


async def test_reading_begins_in_the_middle_of_a_row(store: SqliteStore) -> None:
    session = await begin(store)
    await append(store, session, 1, [b"%d" % n for n in range(1, 11)])
    await append(store, session, 11, [b"%d" % n for n in range(11, 21)])
    for after in range(21):
        expected = {n: b"%d" % n for n in range(after + 1, 21)}
        assert numbered(await store.read(session, after, 1 << 20)) == expected
    assert await store.read(session, 10**15, 100) == []


async def test_reading_stops_at_the_size_asked_for_and_goes_on_from_there(store: SqliteStore) -> None:
    session = await begin(store)
    for n in range(1, 11):
        await append(store, session, n, [b"x" * 1000])
    assert len(await store.read(session, 0, 1)) == 1
    assert len(await store.read(session, 0, 2500)) == 3
    assert sorted(numbered(await read_all(store, session, max_bytes=1500))) == list(range(1, 11))


async def test_paging_back_gives_the_last_events_before_a_number(store: SqliteStore) -> None:
    session = await begin(store)
    for first in (1, 8, 15):
        await append(store, session, first, [b"%d" % n for n in range(first, first + 7)])
    for before in (1, 2, 8, 9, 15, 22, 10**15):
        for limit in (0, 1, 6, 7, 8, 100):
            last = min(before - 1, 21)
            expected = {n: b"%d" % n for n in range(max(1, last - limit + 1), last + 1)} if limit else {}
            rows = await store.read_before(session, before, limit)
            assert numbered(rows) == expected
            assert [row.first_seq for row in rows] == sorted(row.first_seq for row in rows)


async def test_appends_queued_together_share_rows_of_bounded_size(store: SqliteStore) -> None:
    session = await begin(store)
    small = [asyncio.ensure_future(append(store, session, n, [b"x" * 100])) for n in range(1, 2001)]
    assert set(await asyncio.gather(*small)) == {None}
    big = b"y" * (limits.ROW_BYTES + 1)
    assert await append(store, session, 2001, [b"z" * 1000] * 1000 + [big, b"after"]) is None
    rows = await read_all(store, session)
    assert len(rows) < 200
    assert all(len(row.data) <= limits.ROW_BYTES or row.count == 1 for row in rows)
    assert sorted(numbered(rows)) == list(range(1, 3003))
    assert numbered(rows)[3001] == big


async def test_callbacks_come_in_the_order_of_appends_and_once_each(store: SqliteStore) -> None:
    sessions = [await begin(store, name) for name in ("a", "b", "c")]
    told: list[tuple[str, int]] = []
    finished = asyncio.Event()

    def done(session: str, seq: int) -> Any:
        def tell(error: StoreError | None) -> None:
            assert error is None
            told.append((session, seq))
            if len(told) == 300:
                finished.set()

        return tell

    asked = [(session, seq) for seq in range(1, 101) for session in sessions]
    for session, seq in asked:
        store.append(session, 1, seq, [b"x"], done(session, seq))
    assert told == []
    await asyncio.wait_for(finished.wait(), BOUND)
    assert told == asked


async def test_a_callback_that_raises_does_not_keep_others_from_being_told(store: SqliteStore) -> None:
    session = await begin(store)
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))

    def broken(error: StoreError | None) -> None:
        raise RuntimeError("callback failed")

    store.append(session, 1, 1, [b"a"], broken)
    assert await append(store, session, 2, [b"b"]) is None
    assert [str(context["exception"]) for context in reported] == ["callback failed"]
    assert store.backlog == 0


async def test_one_refused_session_does_not_hurt_others_of_the_same_group(store: SqliteStore) -> None:
    good, bad = await begin(store, "good"), await begin(store, "bad")
    outcomes = await asyncio.gather(
        append(store, good, 1, [b"a"]),
        append(store, bad, 1, [b"a"], epoch=7),
        append(store, "dgm_nowhere", 1, [b"a"]),
        append(store, bad, 5, [b"gap"]),
        append(store, good, 2, [b"b"]),
        append(store, bad, 1, [b"right"]),
    )
    assert [type(outcome) for outcome in outcomes] == [
        type(None), Fenced, UnknownSession, SequenceGap, type(None), type(None)
    ]  # fmt: skip
    assert numbered(await read_all(store, good)) == {1: b"a", 2: b"b"}
    assert numbered(await read_all(store, bad)) == {1: b"right"}


async def test_a_gap_names_the_last_event_that_is_stored(store: SqliteStore) -> None:
    session = await begin(store)
    await append(store, session, 1, [b"a", b"b"])
    for wrong in (1, 2, 4):
        refusal = await append(store, session, wrong, [b"x"])
        assert isinstance(refusal, SequenceGap)
        assert refusal.last_seq == 2


async def test_an_event_with_a_line_feed_is_refused(store: SqliteStore) -> None:
    session = await begin(store)
    assert isinstance(await append(store, session, 1, [b"a", b"b\nc"]), BadEvent)
    assert isinstance(await append(store, session, 1, [b"x" * limits.ROW_BYTES, b"\n"]), BadEvent)
    assert await store.last_seq(session) == 0


async def test_empty_events_and_empty_appends_are_harmless(store: SqliteStore) -> None:
    session = await begin(store)
    assert await append(store, session, 1, []) is None
    assert await append(store, session, 1, [b""]) is None
    assert await append(store, session, 2, [b"", b"x", b""]) is None
    assert numbered(await read_all(store, session)) == {1: b"", 2: b"", 3: b"x", 4: b""}


async def test_a_backlog_is_announced_and_its_end_too(store: SqliteStore) -> None:
    session = await begin(store)
    drained = asyncio.Event()
    store.on_drained = drained.set
    seq = 0
    while not store.congested:
        seq += 1
        store.append(session, 1, seq, [b"x" * 1_000_000], lambda error: None)
    assert limits.BACKLOG_HIGH < store.backlog < limits.BACKLOG_HIGH + 2_000_000
    await asyncio.wait_for(drained.wait(), BOUND)
    assert not store.congested
    assert store.backlog <= limits.BACKLOG_LOW


async def test_what_is_queued_when_the_store_closes_is_still_stored(
    store: SqliteStore, path: Any, runtime: Any
) -> None:
    session = await begin(store)
    waiting = [asyncio.ensure_future(append(store, session, n, [b"x"])) for n in range(1, 101)]
    await asyncio.sleep(0)
    await store.close()
    assert set(await asyncio.gather(*waiting)) == {None}
    assert isinstance(await append(store, session, 101, [b"late"]), StoreClosed)
    with pytest.raises(StoreClosed):
        await store.get(session)
    again = await SqliteStore.open(path, runtime)
    assert await again.last_seq(session) == 100
    await again.close()


async def test_reading_an_unknown_session_says_so(store: SqliteStore) -> None:
    for reading in (store.read("dgm_x", 0, 1), store.read_before("dgm_x", 9, 1), store.last_seq("dgm_x")):
        with pytest.raises(UnknownSession, match="dgm_x"):
            await reading


@pytest.mark.parametrize("count", [2, 5, 64, 130])
async def test_many_sessions_are_written_together_and_one_refusal_spares_the_others(
    store: SqliteStore, count: int
) -> None:
    sessions = [await begin(store, f"s{number}") for number in range(count)]
    for first in (1, 2):
        appends = [append(store, session, first, [b"%d" % first]) for session in sessions]
        assert await asyncio.gather(*appends) == [None] * count
    wrong = [append(store, session, 9 if session is sessions[1] else 3, [b"3"]) for session in sessions]
    outcomes = await asyncio.gather(*wrong)
    assert isinstance(outcomes.pop(1), SequenceGap)
    assert outcomes == [None] * (count - 1)
    for session in sessions:
        last = 2 if session is sessions[1] else 3
        assert numbered(await read_all(store, session)) == {n: b"%d" % n for n in range(1, last + 1)}


async def test_the_log_is_moved_into_the_database_while_the_writer_goes_on(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_PAGES", 20)
    session = await begin(store)
    before = store._database.path.stat().st_size
    for n in range(1, 101):
        assert await append(store, session, n, [b"x" * 20_000]) is None
    async with asyncio.timeout(BOUND):
        while store._database.path.stat().st_size < before + 1_000_000:
            await asyncio.sleep(0.01)  # a file that another thread writes raises no event here
    assert len(numbered(await read_all(store, session))) == 100
