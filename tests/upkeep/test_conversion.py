"""Stores of the version before journal files: converted once, session by session, without a loss."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.gateway.ports.store import Lease, Row
from dragoman.store import FileStore, database, writer
from dragoman.upkeep import conversion
from support.store.old_store import TS, OldStore
from support.store.store_process import append, numbered, read_all

ROWS = [[b"a", b"b"], [b"c"], [b"x" * 300_000, b"", b"d"]]
EVENTS = dict(enumerate((event for row in ROWS for event in row), 1))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "dragoman.db"


@pytest.fixture
def runtime(tmp_path: Path) -> Path:
    return tmp_path / "run"


def convert(path: Path) -> tuple[conversion.Converted, list[str]]:
    said: list[str] = []
    return conversion.convert(path, said.append), said


def tables(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


@pytest.mark.parametrize("version", [1, 2])
async def test_every_session_is_there_afterwards_with_every_event(
    path: Path, runtime: Path, version: int
) -> None:
    old = OldStore(path, version=version)
    ids = [old.session(f"{n}", ROWS, updated_at=f"2026-01-0{n + 1}T00:00:00.000Z") for n in range(3)]
    empty = old.session("listed", [], state="stored")
    assert conversion.is_needed(path)
    result, said = convert(path)
    assert (result.moved, result.failed, result.processes) == (4, 0, ())
    assert any("of 4" in line for line in said)
    assert tables(path) == {"identity", "directory", "usage"} and not conversion.is_needed(path)
    store = await FileStore.open(path, runtime)
    assert not store.has_old_sessions
    for session in ids:
        rows = await read_all(store, session)
        assert numbered(rows) == EVENTS
        assert {row.ts for row in rows} == {TS}
    assert [record.id for record in (await store.list()).records] == [ids[2], empty, ids[1], ids[0]]
    found = await store.get(ids[0])
    assert found is not None
    assert (found.title, found.agent_session_id, found.extra, found.epoch, found.last_seq) == (
        "Talk 0", "theirs-0", {"mode": "code"}, 4, 6,
    )  # fmt: skip
    assert await store.acquire(ids[0]) == Lease(ids[0], 5, 6)
    assert await append(store, ids[0], 7, [b"on"], epoch=5) is None
    assert not (path.parent / "journal" / empty).exists()
    await store.close()


def test_files_are_on_the_disk_before_the_old_record_goes(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = OldStore(path)
    ids = [old.session("whole", ROWS), old.session("holes", [[b"a"], [b"b"], [b"c"]])]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM journal WHERE data = x'62'")
        connection.commit()
    flushed: list[os.stat_result] = []
    flush = os.fsync

    def note(descriptor: int) -> None:
        flushed.append(os.fstat(descriptor))
        flush(descriptor)

    add = conversion._add

    def check_and_add(connection: sqlite3.Connection, session: conversion.Old) -> None:
        folder = path.parent / "journal" / session.id
        files = list(folder.glob("*.log"))
        for each in [*files, folder, folder.parent, path.parent]:
            assert any(os.path.samestat(each.stat(), known) for known in flushed), each
        checked.append((session.id, len(files)))
        add(connection, session)

    checked: list[tuple[str, int]] = []
    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(writer, "sync_data", note)
    monkeypatch.setattr(conversion, "_add", check_and_add)
    convert(path)
    assert checked == [(ids[0], 1), (ids[1], 2)]


async def test_a_pruned_session_keeps_its_numbers(path: Path, runtime: Path) -> None:
    old = OldStore(path)
    session = old.session("pruned", [[b"last"]], first_seq=41)
    emptied = old.session("emptied", [], first_seq=9)
    convert(path)
    store = await FileStore.open(path, runtime)
    found = await store.get(session)
    assert found is not None and (found.first_seq, found.last_seq) == (41, 41)
    assert await store.acquire(emptied) == Lease(emptied, 5, 8)
    await store.close()


async def test_sessions_of_old_processes_wait_for_them_and_the_rest_is_served(
    path: Path, runtime: Path
) -> None:
    old = OldStore(path)
    alive = old.owner("alive", alive=True)
    os.close(old.owner("dead", alive=False))
    waiting, free, orphan = (
        old.session("waiting", ROWS, owner="alive"),
        old.session("free", ROWS),
        old.session("orphan", ROWS, owner="dead", state="working"),
    )
    result, said = convert(path)
    assert (result.moved, result.processes) == (2, (os.getpid(),))
    assert f"1 sessions are still open in older Dragoman processes ({os.getpid()})" in said[-1]
    store = await FileStore.open(path, runtime)
    assert store.has_old_sessions
    assert {record.id for record in (await store.list()).records} == {free, orphan}
    await store.close()
    with closing(sqlite3.connect(path)) as process:  # the old one goes on, and may write what it likes
        process.execute("UPDATE sessions SET title = 'said later'")
        process.execute("INSERT INTO journal VALUES ((SELECT n FROM heads) << 36 | 7, 1, 0, x'6c61746572')")
        process.commit()
    os.close(alive)
    assert convert(path)[0].moved == 1
    assert tables(path) == {"identity", "directory", "usage"}
    store = await FileStore.open(path, runtime)
    assert numbered(await read_all(store, waiting)) == {**EVENTS, 7: b"later"}
    found = await store.get(waiting)
    assert found is not None and found.title == "said later"
    await store.close()


def test_old_rows_stay_while_an_old_process_runs_even_without_a_session(path: Path) -> None:
    old = OldStore(path)
    alive = old.owner("alive", alive=True)
    old.session("free", ROWS)
    assert convert(path)[0].moved == 1
    assert "journal" in tables(path)
    os.close(alive)
    convert(path)
    assert "journal" not in tables(path)


async def test_a_session_that_cannot_be_read_stays_and_the_others_are_converted(
    path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = OldStore(path)
    bad, good = old.session("bad", ROWS), old.session("good", ROWS)
    real = conversion._rows

    def rows(connection: sqlite3.Connection, session: conversion.Old) -> list[Row]:
        if session.id == bad:
            raise sqlite3.DatabaseError("database disk image is malformed")
        return list(real(connection, session))

    monkeypatch.setattr(conversion, "_rows", rows)
    result, _ = convert(path)
    assert (result.moved, result.failed) == (1, 1)
    assert {"heads", "journal"} <= tables(path)
    store = await FileStore.open(path, runtime)
    assert numbered(await read_all(store, good)) == EVENTS
    await store.close()
    monkeypatch.undo()
    assert convert(path)[0].moved == 1


async def test_rows_that_are_gone_are_holes(path: Path, runtime: Path) -> None:
    old = OldStore(path)
    session = old.session("hole", ROWS)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM journal WHERE count = 1")
        connection.commit()
    assert convert(path)[0].failed == 0
    store = await FileStore.open(path, runtime)
    rows = await read_all(store, session)
    assert [(row.first_seq, row.count) for row in rows if row.damaged] == [(3, 1)]
    assert numbered([row for row in rows if not row.damaged]) == {n: EVENTS[n] for n in (1, 2, 4, 5, 6)}
    await store.close()


def test_what_is_not_equal_when_it_is_read_back_is_not_converted(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = OldStore(path)
    old.session("one", ROWS)
    real = conversion._write_rows

    def damaged(rows: object, target: Path, session: conversion.Old) -> None:
        real(rows, target, session)  # type: ignore[arg-type]
        (file,) = target.glob("*.log")
        file.write_bytes(file.read_bytes().replace(b"\nc\n", b"\nC\n"))

    monkeypatch.setattr(conversion, "_write_rows", damaged)
    assert convert(path)[0].failed == 1
    assert "journal" in tables(path)


def test_processes_that_start_together_convert_once(path: Path) -> None:
    old = OldStore(path)
    for n in range(30):
        old.session(f"{n}", ROWS)
    results: list[conversion.Converted] = []
    threads = [threading.Thread(target=lambda: results.append(convert(path)[0])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(result.moved for result in results) == 30
    assert not any(result.failed for result in results)


def test_the_old_version_does_not_open_a_converted_store(path: Path) -> None:
    OldStore(path)
    convert(path)
    with closing(sqlite3.connect(path)) as connection:
        assert database.version(connection) == 4
