"""Journals that a disk, a crash or a person has changed: what is wrong is found, told and never served as truth."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.gateway.ports.store import Lease, Row, SchemaTooNew
from dragoman.store import FileStore, limits, segments
from dragoman.store.segments import End, Reader
from dragoman.store.writer import Writer
from support.store.store_process import append, begin, numbered, read_all

BATCHES = ([b"a", b"bb"], [b"#1 1 2 1 look 00000000"], [b"", b"ccc", b""], [b"d" * 40], [b"e"])
EVENTS = dict(enumerate((event for batch in BATCHES for event in batch), 1))


def write(folder: Path, *batches: list[bytes]) -> Path:
    folder.mkdir(exist_ok=True)
    writer = Writer(folder, End(), 1)
    for batch in batches:
        writer.write(writer.next_seq, batch)
    writer.close()
    (file,) = folder.glob("*.log")
    return file


def take_over(folder: Path, epoch: int) -> Writer:
    """As by a process that finds the session not given back."""
    segments.begin(folder, Reader().end(folder).last_seq + 1, epoch)
    return Writer(folder, Reader().end(folder), epoch)


def read(folder: Path) -> tuple[dict[int, bytes], set[int]]:
    """All events by number, and the numbers that are said to be lost."""
    found: dict[int, bytes] = {}
    lost: set[int] = set()
    position, reader = 0, Reader()
    while rows := reader.read(folder, position, 30):
        for row in rows:
            assert row.first_seq == position + 1
            position = row.last_seq
            if row.damaged:
                lost |= set(range(row.first_seq, row.last_seq + 1))
            found.update(enumerate(row.events(), row.first_seq))
    assert not found.keys() & lost
    return found, lost


def test_a_journal_that_was_cut_off_at_any_byte_ends_with_its_last_whole_batch(tmp_path: Path) -> None:
    file = write(tmp_path / "j", *BATCHES)
    whole = file.read_bytes()
    ends = set()
    for length in range(len(whole) + 1):
        file.write_bytes(whole[:length])
        found, lost = read(file.parent)
        assert not lost and found == {seq: EVENTS[seq] for seq in range(1, len(found) + 1)}
        end = Reader().end(file.parent)
        assert (end.last_seq, end.offset + end.torn) == (len(found), length)
        ends.add(len(found))
        writer = Writer(file.parent, end, 2)
        writer.write(len(found) + 1, [b"after"])
        writer.close()
        assert read(file.parent)[0] == {**found, len(found) + 1: b"after"}
        for other in file.parent.glob("*-2.log"):
            other.unlink()
    assert ends == {0, 2, 3, 6, 7, 8}


@pytest.mark.parametrize(
    "change", [lambda byte: byte ^ 1, lambda byte: byte ^ 64, lambda byte: 0, lambda byte: 35]
)
def test_no_changed_byte_is_ever_served_as_truth(tmp_path: Path, change: Callable[[int], int]) -> None:
    file = write(tmp_path / "j", *BATCHES)
    whole = file.read_bytes()
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] = change(damaged[at])
        if damaged == whole:
            continue
        file.write_bytes(damaged)
        if damaged.startswith(b"#dragoman journal ") and damaged[18:19].isdigit() and damaged[18] > 49:
            with pytest.raises(SchemaTooNew):
                read(file.parent)
            continue
        found, lost = read(file.parent)
        assert all(EVENTS.get(seq) == event for seq, event in found.items()), at
        last_batch = at >= whole.rindex(b"#8")
        assert found.keys() | lost >= EVENTS.keys() - ({8} if last_batch else set()), at


def test_a_missing_and_a_cut_off_segment_are_holes_and_the_rest_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SEGMENT_BYTES", 300)
    folder = tmp_path / "j"
    folder.mkdir()
    writer = Writer(folder, End(), 1)
    events = {seq: b"%d" % seq * 20 for seq in range(1, 41)}
    for seq, event in events.items():
        writer.write(seq, [event])
    writer.close()
    files = sorted(folder.glob("*.log"))
    starts = [int(file.stem.split("-")[0]) for file in files]
    files[1].unlink()
    files[3].write_bytes(files[3].read_bytes()[:-20])
    found, lost = read(folder)
    assert lost == set(range(starts[1], starts[2])) | {starts[4] - 1}
    assert found == {seq: event for seq, event in events.items() if seq not in lost}
    files[0].unlink()  # the first: as if pruned
    assert Reader().end(folder).first_seq == starts[2]


def test_an_append_of_several_batches_counts_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BATCH_BYTES", 50)
    file = write(tmp_path / "j", [b"before"], [b"%02d" % n * 10 for n in range(20)])
    whole = file.read_bytes()
    assert whole.count(b"+") > 5
    for length in range(whole.index(b"#2 "), len(whole)):
        file.write_bytes(whole[:length])
        assert read(file.parent) == ({1: b"before"}, set())
    file.write_bytes(whole)
    assert len(read(file.parent)[0]) == 21
    for at in range(whole.index(b"#2 "), len(whole)):  # a changed byte is damage, and costs one batch alone
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 2]) + whole[at + 1 :])
        found, lost = read(file.parent)
        assert 1 in found and (found.keys() | lost == set(range(1, 22)) or at >= whole.rindex(b"#"))


def test_what_a_former_owner_writes_after_it_was_overtaken_is_not_part_of_the_journal(tmp_path: Path) -> None:
    folder = tmp_path / "j"
    folder.mkdir()
    former = Writer(folder, End(), 1)
    former.write(1, [b"one", b"two"])
    owner = take_over(folder, 2)
    former.write(3, [b"late"])
    owner.write(3, [b"three"])
    former.write(4, [b"later"])
    assert read(folder) == ({1: b"one", 2: b"two", 3: b"three"}, set())
    third = take_over(folder, 3)
    fourth = take_over(folder, 4)
    third.write(4, [b"of an owner that was overtaken before it wrote"])
    fourth.write(4, [b"four"])
    assert read(folder) == ({1: b"one", 2: b"two", 3: b"three", 4: b"four"}, set())
    (folder / segments.name(5, 1)).write_bytes(b"")  # a new segment of the very first one
    assert Reader().end(folder).last_seq == 4


async def test_a_crash_in_mid_write_is_said_by_the_next_lease(store: FileStore, path: Path) -> None:
    session = await begin(store)
    await append(store, session, 1, [b"whole"])
    await append(store, session, 2, [b"torn" * 100])
    store._owned.pop(session).close()  # as if killed
    (file,) = (path.parent / "journal" / session).glob("*.log")
    file.write_bytes(file.read_bytes()[:-100])
    lease = await store.acquire(session)
    assert isinstance(lease, Lease)
    assert (lease.last_seq, lease.torn > 100) == (1, True)
    assert await append(store, session, 2, [b"anew"], epoch=lease.epoch) is None
    assert numbered(await read_all(store, session)) == {1: b"whole", 2: b"anew"}


async def test_a_journal_of_a_newer_format_is_left_alone(store: FileStore, path: Path) -> None:
    session = await begin(store)
    await append(store, session, 1, [b"x"])
    await store.release(session, 1)
    (file,) = (path.parent / "journal" / session).glob("*.log")
    newer = file.read_bytes().replace(b"journal 1", b"journal 2", 1)
    file.write_bytes(newer)
    for attempt in (store.read(session, 0, 10), store.acquire(session), store.get(session)):
        with pytest.raises(SchemaTooNew, match="Upgrade"):
            await attempt
    assert file.read_bytes() == newer


def lost(rows: list[Row]) -> list[tuple[int, int]]:
    return [(row.first_seq, row.last_seq) for row in rows if row.damaged]


async def segmented(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> str:
    """A session with three segments of three events each, given back."""
    monkeypatch.setattr(limits, "SEGMENT_BYTES", 1)
    session = await begin(store)
    for seq in (1, 4, 7):
        await append(store, session, seq, [b"%d" % (seq + n) for n in range(3)])
    await store.release(session, 1)
    return session


@pytest.mark.parametrize("missing", ["000000000007-1.log", "*.log", "*"])
async def test_numbers_of_files_that_are_gone_are_lost_and_not_given_again(
    store: FileStore, path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    session = await segmented(store, monkeypatch)
    for file in (path.parent / "journal" / session).glob(missing):
        file.unlink()
    gone = (7, 9) if missing.startswith("0") else (1, 9)
    found = await store.get(session)
    assert found is not None and (found.first_seq, found.last_seq) == (1, 9)
    for owned in (False, True):
        if owned:
            assert await store.acquire(session) == Lease(session, 2, 9)
        assert lost(await read_all(store, session)) == [gone]
        assert lost(await read_all(store, session, 7)) == [(8, 9)]
        assert lost(await store.read_before(session, 10, 100)) == [gone]
        assert lost(await store.read_before(session, 9, 100)) == [(gone[0], 8)]
        assert await store.read_before(session, 1, 1) == await store.read(session, 9, 1) == []
    assert await append(store, session, 10, [b"on"], epoch=2) is None
    await store.release(session, 2)
    assert lost(await read_all(store, session)) == [gone]
    assert numbered((await read_all(store, session))[-1:]) == {10: b"on"}


async def test_what_is_lost_is_pruned_with_the_rest(
    store: FileStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await segmented(store, monkeypatch)
    (path.parent / "journal" / session / "000000000007-1.log").unlink()
    assert await store.empty(session)
    assert await read_all(store, session) == []
    assert await store.acquire(session) == Lease(session, 2, 9)


async def test_a_pruned_journal_has_lost_nothing(store: FileStore, path: Path) -> None:
    session = await begin(store)
    await append(store, session, 1, [b"a", b"b"])
    await store.release(session, 1)
    assert await store.empty(session)
    assert await read_all(store, session) == await store.read_before(session, 3, 10) == []
    assert await store.acquire(session) == Lease(session, 2, 2)
    assert await read_all(store, session) == []


def test_a_length_beyond_all_bounds_is_damage(tmp_path: Path) -> None:
    file = write(tmp_path / "j", [b"a"], [b"b"])
    file.write_bytes(file.read_bytes().replace(b"#1 1 2 1 ", b"#1 1 99999999999999999999 1 ", 1))
    assert read(file.parent) == ({2: b"b"}, {1})


def test_a_long_journal_is_read_from_any_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SEGMENT_BYTES", 5_000)
    chance = random.Random(7)
    folder = tmp_path / "j"
    folder.mkdir()
    writer = Writer(folder, End(), 1)
    events: list[bytes] = []
    while len(events) < 3000:
        batch = [b"%d" % (len(events) + n) for n in range(chance.choice((1, 1, 2, 9)))]
        writer.write(len(events) + 1, batch)
        events += batch
    reader = Reader()
    for _ in range(300):
        after, size = chance.randrange(len(events)), chance.choice((1, 50, 5000))
        rows = reader.read(folder, after, size)
        assert list(numbered(rows).values()) == events[after : rows[-1].last_seq]
        limit = chance.randrange(1, 200)
        rows = reader.read_before(folder, after + 1, limit)
        assert list(numbered(rows).values()) == events[max(after - limit, 0) : after]
