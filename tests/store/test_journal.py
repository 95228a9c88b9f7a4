"""Appends, and reading them back."""

from __future__ import annotations

import asyncio
import re
import threading
from pathlib import Path
from typing import Any, Literal

import pytest

from dragoman import machine
from dragoman.gateway.ports.store import (
    BadEvent,
    Fenced,
    Lease,
    SequenceGap,
    SessionChanges,
    StoreClosed,
    StoreError,
    StoreUnavailable,
    UnknownSession,
)
from dragoman.store import FileStore, directory, limits, writer
from dragoman.store.writer import Writer
from support.store.store_process import BOUND, append, begin, numbered, read_all


async def test_what_was_appended_is_read_back_with_its_numbers(store: FileStore) -> None:
    session = await begin(store)
    assert await append(store, session, 1, [b"a", b"b"]) is None
    assert await append(store, session, 3, [b"c"]) is None
    assert numbered(await read_all(store, session)) == {1: b"a", 2: b"b", 3: b"c"}
    assert await store.last_seq(session) == 3


async def test_reading_begins_in_the_middle_of_a_row(store: FileStore) -> None:
    session = await begin(store)
    await append(store, session, 1, [b"%d" % n for n in range(1, 11)])
    await append(store, session, 11, [b"%d" % n for n in range(11, 21)])
    for after in range(21):
        expected = {n: b"%d" % n for n in range(after + 1, 21)}
        assert numbered(await store.read(session, after, 1 << 20)) == expected
    assert await store.read(session, 10**15, 100) == []


async def test_reading_stops_at_the_size_asked_for_and_goes_on_from_there(store: FileStore) -> None:
    session = await begin(store)
    for n in range(1, 11):
        await append(store, session, n, [b"x" * 1000])
    assert len(await store.read(session, 0, 1)) == 1
    assert len(await store.read(session, 0, 2500)) == 3
    assert sorted(numbered(await read_all(store, session, max_bytes=1500))) == list(range(1, 11))


async def test_paging_back_gives_the_last_events_before_a_number(store: FileStore) -> None:
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


async def test_an_append_of_many_bytes_is_read_in_rows_of_bounded_size(store: FileStore) -> None:
    session = await begin(store)
    big = b"y" * (limits.BATCH_BYTES + 1)
    events = [*[b"z" * 1000] * 1000, big, b"after"]
    assert await append(store, session, 1, events) is None
    rows = await read_all(store, session)
    assert all(len(row.data) <= 2 * limits.BATCH_BYTES for row in rows)
    assert list(numbered(rows).values()) == events


async def test_callbacks_come_in_the_order_of_appends_and_once_each(store: FileStore) -> None:
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
    await asyncio.wait_for(finished.wait(), BOUND)
    assert sorted(told) == sorted(asked)
    for session in sessions:  # one session does not wait for another
        assert [seq for name, seq in told if name == session] == list(range(1, 101))


async def test_what_is_appended_is_stored_before_the_call_returns(store: FileStore, path: Path) -> None:
    """The event loop writes by itself: no thread, no other turn of the loop."""
    session = await begin(store)
    told: list[StoreError | None] = []
    store.append(session, 1, 1, [b"at once"], told.append)
    assert told == [None]
    (file,) = (path.parent / "journal" / session).glob("*.log")
    assert b"\nat once\n" in file.read_bytes()


async def test_a_large_append_is_written_beside_the_event_loop_and_keeps_its_place(store: FileStore) -> None:
    session = await begin(store)
    told: list[int] = []
    large = [b"x" * 1000] * (limits.INLINE_BYTES // 1000 + 1)
    finished = asyncio.Event()
    store.append(session, 1, 1, large, lambda error: told.append(1))
    assert told == [] and store.backlog > limits.INLINE_BYTES

    def finish(error: StoreError | None) -> None:
        told.append(2)
        finished.set()

    store.append(session, 1, len(large) + 1, [b"small"], finish)
    await asyncio.wait_for(finished.wait(), BOUND)
    assert told == [1, 2] and store.backlog == 0
    assert numbered(await read_all(store, session, len(large))) == {len(large) + 1: b"small"}


async def test_a_large_append_does_not_wait_for_that_of_another_session(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, other = await begin(store, "held"), await begin(store, "other")
    goes_on, real = threading.Event(), Writer.write_all

    def slow(writer: Writer, appends: Any) -> Any:
        if writer.folder.name == held:
            goes_on.wait(20)
        return real(writer, appends)

    monkeypatch.setattr(Writer, "write_all", slow)
    waiting = asyncio.create_task(append(store, held, 1, [b"x" * limits.INLINE_BYTES, b"y"]))
    try:
        assert await append(store, other, 1, [b"x" * limits.INLINE_BYTES, b"y"]) is None
        assert not waiting.done()
    finally:
        goes_on.set()
    assert await waiting is None


async def test_a_slow_disk_moves_writes_into_threads_and_back(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await begin(store)
    monkeypatch.setattr(limits, "SLOW_SECONDS", 0.0)

    def inline() -> bool:
        return store._disk.inline

    assert await append(store, session, 1, [b"slow"]) is None
    assert inline()
    assert await append(store, session, 2, [b"slow again"]) is None
    assert not inline()
    assert await append(store, session, 3, [b"in a thread"]) is None
    monkeypatch.setattr(limits, "SLOW_SECONDS", 10.0)
    for seq in range(4, 4 + limits.QUICK_WRITES):
        assert await append(store, session, seq, [b"quick"]) is None
    assert inline()
    assert len(numbered(await read_all(store, session))) == 3 + limits.QUICK_WRITES


async def test_a_slow_write_now_and_then_is_not_the_disks_fault(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await begin(store)
    for seq in range(1, 4 * limits.QUICK_WRITES):
        monkeypatch.setattr(limits, "SLOW_SECONDS", 10.0 if seq % limits.QUICK_WRITES else 0.0)
        assert await append(store, session, seq, [b"event"]) is None
        assert store._disk.inline


async def test_a_callback_that_raises_does_not_keep_others_from_being_told(store: FileStore) -> None:
    session = await begin(store)
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))

    def broken(error: StoreError | None) -> None:
        raise RuntimeError("callback failed")

    large = [b"x" * limits.INLINE_BYTES, b"x"]
    store.append(session, 1, 1, large, broken)
    assert await append(store, session, 3, [b"b"]) is None
    assert [str(context["exception"]) for context in reported] == ["callback failed"]
    assert store.backlog == 0


async def test_one_refused_session_does_not_hurt_others_of_the_same_group(store: FileStore) -> None:
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
        type(None), Fenced, Fenced, SequenceGap, type(None), type(None)
    ]  # fmt: skip
    assert numbered(await read_all(store, good)) == {1: b"a", 2: b"b"}
    assert numbered(await read_all(store, bad)) == {1: b"right"}


async def test_a_gap_names_the_last_event_that_is_stored(store: FileStore) -> None:
    session = await begin(store)
    await append(store, session, 1, [b"a", b"b"])
    for wrong in (1, 2, 4):
        refusal = await append(store, session, wrong, [b"x"])
        assert isinstance(refusal, SequenceGap)
        assert refusal.last_seq == 2


async def test_an_event_with_a_line_feed_is_refused(store: FileStore) -> None:
    session = await begin(store)
    assert isinstance(await append(store, session, 1, [b"a", b"b\nc"]), BadEvent)
    assert isinstance(await append(store, session, 1, [b"x" * limits.BATCH_BYTES, b"\n"]), BadEvent)
    assert await store.last_seq(session) == 0


@pytest.mark.parametrize("sync", ["normal", "full"])
async def test_an_append_that_fails_unexpectedly_has_an_outcome_and_the_next_is_stored(
    path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch, sync: Literal["normal", "full"]
) -> None:
    store = await FileStore.open(path, runtime, sync=sync)
    one, other = await begin(store, "one"), await begin(store, "other")
    with monkeypatch.context() as patched:
        patched.setattr(writer, "crc32", lambda *_: _fail())
        async with asyncio.timeout(BOUND):
            outcomes = await asyncio.gather(
                append(store, one, 1, [b"a"]), append(store, other, 1, [b"x" * 2 * limits.INLINE_BYTES])
            )
    assert [type(outcome) for outcome in outcomes] == [StoreUnavailable, StoreUnavailable]
    async with asyncio.timeout(BOUND):
        assert await append(store, one, 1, [b"a"]) is None
        assert await append(store, other, 1, [b"b"]) is None
    assert [numbered(await read_all(store, each)) for each in (one, other)] == [{1: b"a"}, {1: b"b"}]
    await store.close()


def _fail() -> int:
    raise MemoryError


async def test_empty_events_and_empty_appends_are_harmless(store: FileStore) -> None:
    session = await begin(store)
    assert await append(store, session, 1, []) is None
    assert await append(store, session, 1, [b""]) is None
    assert await append(store, session, 2, [b"", b"x", b""]) is None
    assert numbered(await read_all(store, session)) == {1: b"", 2: b"", 3: b"x", 4: b""}


async def test_what_is_queued_when_the_store_closes_is_still_stored(
    store: FileStore, path: Any, runtime: Any
) -> None:
    session = await begin(store)
    waiting = [asyncio.ensure_future(append(store, session, n, [b"x"])) for n in range(1, 101)]
    await asyncio.sleep(0)
    await store.close()
    assert set(await asyncio.gather(*waiting)) == {None}
    assert isinstance(await append(store, session, 101, [b"late"]), StoreClosed)
    with pytest.raises(StoreClosed):
        await store.get(session)
    again = await FileStore.open(path, runtime)
    assert await again.last_seq(session) == 100
    await again.close()


async def test_reading_an_unknown_session_says_so(store: FileStore) -> None:
    for reading in (store.read("dgm_x", 0, 1), store.read_before("dgm_x", 9, 1), store.last_seq("dgm_x")):
        with pytest.raises(UnknownSession, match="dgm_x"):
            await reading


async def test_a_journal_goes_on_in_another_file_when_one_is_long(
    store: FileStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SEGMENT_BYTES", 10_000)
    session = await begin(store)
    for seq in range(1, 101):
        assert await append(store, session, seq, [b"%d" % seq * 100]) is None
    files = sorted((path.parent / "journal" / session).glob("*.log"))
    assert len(files) > 2 and all(file.stat().st_size < 11_000 for file in files)
    expected = {seq: b"%d" % seq * 100 for seq in range(1, 101)}
    assert numbered(await read_all(store, session, max_bytes=500)) == expected
    for before in (101, 60, 42, 3):
        rows = await store.read_before(session, before, 50)
        assert numbered(rows) == {n: expected[n] for n in range(max(1, before - 50), before)}


async def test_paging_back_over_huge_events_stops_early(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PAGE_BACK_BYTES", 5_000)
    session = await begin(store)
    for seq in range(1, 21):
        await append(store, session, seq, [b"x" * 2_000])
    assert list(numbered(await store.read_before(session, 21, 100))) == [18, 19, 20]


async def test_a_reader_that_saw_another_end_is_led_back_to_what_is_common(
    store: FileStore, path: Path
) -> None:
    session = await begin(store)
    await append(store, session, 1, [b"a", b"b"])
    await store.acquire(session)
    await append(store, session, 3, [b"c", b"d", b"e"], epoch=2)
    assert await store.common_seq(session, 1, 4) == 4  # it has seen what came after the change of hands
    store._owned.pop(session).close()
    lock = path.parent / "journal" / session / "lock"
    lock.write_text(lock.read_text().replace(machine.boot_id(), "before-a-power-cut"))
    lease = await store.acquire(session)
    assert isinstance(lease, Lease) and lease.epoch > limits.BREAK_EPOCH
    await append(store, session, 6, [b"f", b"g"], epoch=lease.epoch)
    assert (
        await store.common_seq(session, 2, 7) == 5
    )  # at epoch 2 the events 6 and 7 were others, which are lost
    assert await store.common_seq(session, 2, 4) == 4
    assert await store.common_seq(session, lease.epoch, 7) == 7


async def killed(store: FileStore, path: Path, session: str, boot: str = "") -> Lease:
    """The lease after a process died with the session, maybe with its machine."""
    store._owned.pop(session).close()
    if boot:
        lock = path.parent / "journal" / session / "lock"
        lock.write_text(lock.read_text().replace(machine.boot_id(), boot))
    lease = await store.acquire(session)
    assert isinstance(lease, Lease)
    return lease


async def test_a_reader_that_watched_a_takeover_after_a_break_keeps_its_place(
    store: FileStore, path: Path
) -> None:
    session = await begin(store)
    await append(store, session, 1, [b"a", b"b"])
    broken = await killed(store, path, session, "before-a-power-cut")
    await append(store, session, 3, [b"c"], epoch=broken.epoch)
    ordinary = await killed(store, path, session)
    await append(store, session, 4, [b"d"], epoch=ordinary.epoch)
    assert await store.common_seq(session, broken.epoch, 4) == 4
    assert await store.common_seq(session, 1, 4) == 2


async def test_a_break_is_known_even_if_nothing_was_written_at_it(store: FileStore, path: Path) -> None:
    session = await begin(store)
    await append(store, session, 1, [b"a", b"b"])
    broken = await killed(store, path, session, "before-a-power-cut")
    ordinary = await killed(store, path, session)
    await append(store, session, 3, [b"c"], epoch=ordinary.epoch)
    await store.release(session, ordinary.epoch)
    assert await store.common_seq(session, 1, 3) == 2
    assert await store.common_seq(session, broken.epoch, 3) == 3
    assert numbered(await read_all(store, session)) == {1: b"a", 2: b"b", 3: b"c"}


async def test_the_files_can_be_read_by_people(store: FileStore, path: Path) -> None:
    session = await begin(store)
    await append(store, session, 1, [b'U{"text":"hello"}', b'R{"dragoman":"turn_ended"}'])
    (file,) = (path.parent / "journal" / session).glob("*.log")
    first, head, *events = file.read_text().splitlines()
    assert first == f"#dragoman journal 1 {session}"
    assert re.fullmatch(r"#1 2 45 1 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ [0-9a-f]{8}", head)
    assert events == ['U{"text":"hello"}', 'R{"dragoman":"turn_ended"}']
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


async def test_what_only_says_how_a_session_is_costs_one_write_a_second(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await begin(store)
    written: list[str] = []
    real = directory.change

    def change(*change: Any) -> None:
        written.append("write")
        real(*change)

    monkeypatch.setattr(directory, "change", change)
    for state in ("working", "idle") * 50:
        store.touch(session, 1, state, lambda error: None)
    store.update(session, 1, SessionChanges(title="goes at once"))
    found = await store.get(session)
    assert found is not None and (found.state, found.title) == ("idle", "goes at once")
    assert len(written) == 3  # the first state, the last one, and the title
