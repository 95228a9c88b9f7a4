"""Files that are damaged, foreign, full, locked, read-only or of another version."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dragoman.gateway.ports.store import (
    SchemaTooNew,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreReadOnly,
    StoreUnavailable,
)
from dragoman.store import SqliteStore, limits, schema
from support.mounts import mounting
from support.store import append, begin, numbered, read_all, record


async def refusal(path: Path, runtime: Path, **options: Any) -> StoreError:
    """Why the file does not open; it must be left as it was."""
    before = path.read_bytes()
    with pytest.raises(StoreError) as caught:
        await SqliteStore.open(path, runtime, **options)
    assert path.read_bytes() == before
    assert str(path) in str(caught.value)
    return caught.value


async def filled(path: Path, runtime: Path) -> None:
    store = await SqliteStore.open(path, runtime)
    for n in range(50):
        session = await begin(store, f"{n}", minute=n)
        await append(store, session, 1, [b"x" * 5000])
    await store.close()


async def test_a_new_store_is_private_and_leaves_nothing_else_behind(path: Path, runtime: Path) -> None:
    await filled(path, runtime)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in path.parent.iterdir()] == [path.name]


async def test_processes_that_start_together_agree_on_one_database(path: Path, peer: Any) -> None:
    peers = [await peer() for _ in range(5)]
    for one in peers:
        assert "owner" in await one.hear()
    for n, one in enumerate(peers):
        assert await one.ask("create", f"{n}") is None
    assert len((await peers[0].ask("list"))["records"]) == 5
    assert not [file.name for file in path.parent.iterdir() if file.name.startswith(".")]


@pytest.mark.parametrize("content", [b"", b"x", b"not a database\n" * 1000, b"\x00" * 8192])
@pytest.mark.parametrize("mode", ["rw", "ro"])
async def test_a_file_that_is_no_database_is_named_and_left_alone(
    path: Path, runtime: Path, content: bytes, mode: str
) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    assert isinstance(await refusal(path, runtime, mode=mode), StoreCorrupt)


async def test_a_truncated_database_is_called_corrupt(path: Path, runtime: Path) -> None:
    await filled(path, runtime)
    os.truncate(path, path.stat().st_size // 2)
    assert isinstance(await refusal(path, runtime), StoreCorrupt)


async def test_a_database_with_a_damaged_first_page_is_called_corrupt(path: Path, runtime: Path) -> None:
    await filled(path, runtime)
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 3900)
    assert isinstance(await refusal(path, runtime), StoreCorrupt)


async def test_damage_further_in_costs_only_what_is_there(path: Path, runtime: Path) -> None:
    await filled(path, runtime)
    data = bytearray(path.read_bytes())
    at = data.rindex(b"x" * 3000) // 4096 * 4096  # a page of one journal row
    data[at : at + 64] = b"\xff" * 64
    path.write_bytes(data)
    store = await SqliteStore.open(path, runtime)
    assert len((await store.list()).records) == 50
    damaged = 0
    for n in range(50):
        try:
            await store.read(f"dgm_{n}", 0, 1 << 20)
        except StoreCorrupt:
            damaged += 1
    assert damaged < 50
    session = await begin(store, "new")
    assert (await store.get(session)) is not None
    await store.close()


async def test_the_database_of_another_program_is_left_alone(path: Path, runtime: Path) -> None:
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE bookmarks (url)")
    connection.close()
    assert "another program" in str(await refusal(path, runtime))


@pytest.mark.parametrize("mode", ["rw", "ro"])
async def test_a_newer_schema_is_refused_with_what_to_do(path: Path, runtime: Path, mode: str) -> None:
    await filled(path, runtime)
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {len(schema.STEPS) + 1}")
    connection.close()
    newer = await refusal(path, runtime, mode=mode)
    assert isinstance(newer, SchemaTooNew)
    assert "Upgrade Dragoman" in str(newer)


async def test_an_older_schema_is_migrated_without_loss(
    path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(path, runtime)
    step = ("ALTER TABLE sessions ADD COLUMN colour TEXT", "UPDATE sessions SET colour = 'red'")
    monkeypatch.setattr(schema, "STEPS", (*schema.STEPS, step))
    monkeypatch.setattr(schema.migrate, "__defaults__", (schema.STEPS,))
    with pytest.raises(StoreUnavailable, match="older"):
        await SqliteStore.open(path, runtime, mode="ro")
    store = await SqliteStore.open(path, runtime)
    assert len(await read_all(store, "dgm_7")) == 1
    await store.close()
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT DISTINCT colour FROM sessions").fetchall() == [("red",)]
    assert schema.version(connection) == len(schema.STEPS)
    connection.close()


async def test_a_migration_that_fails_changes_nothing(path: Path, runtime: Path) -> None:
    await filled(path, runtime)
    connection = sqlite3.connect(path, isolation_level=None)
    broken = (*schema.STEPS, ("DROP TABLE journal", "SELECT nonsense"))
    with pytest.raises(sqlite3.OperationalError):
        schema.migrate(connection, broken)
    connection.close()
    store = await SqliteStore.open(path, runtime)
    assert len(await read_all(store, "dgm_7")) == 1
    await store.close()


async def test_a_full_disk_is_told_and_the_store_goes_on_when_there_is_space(
    tmp_path: Path, peer: Any
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    prefix = mounting(f"mount -t tmpfs -o size=5m tmpfs {disk} && head -c 1000000 /dev/zero > {disk}/ballast")
    writer = await peer(disk / "dragoman.db", prefix=prefix)
    assert "owner" in await writer.hear()
    await writer.ask("create", "one")
    await writer.ask("create", "old")
    await writer.ask("append", "dgm_old", 1, 1, ["kept"])
    stored, kind, text = await writer.ask("fill", "dgm_one", 16)
    assert (kind, stored > 0) == ("StoreFull", True)
    assert "No space is left" in text
    assert await writer.ask("last_seq", "dgm_one") == stored
    assert await writer.ask("read", "dgm_old") == ["kept"]
    refused = await writer.ask("append", "dgm_one", 1, stored + 1, ["x" * 300_000])
    assert refused["error"] == "StoreFull"
    await writer.ask("unlink", str(disk / "ballast"))
    assert await writer.ask("append", "dgm_old", 1, 2, ["x" * 300_000]) is None


async def test_a_read_only_disk_is_told_and_can_still_be_read(path: Path, runtime: Path, peer: Any) -> None:
    await filled(path, runtime)
    folder = path.parent
    prefix = mounting(f"mount --bind {folder} {folder} && mount -o remount,ro,bind {folder}")
    refused = await (await peer(prefix=prefix)).hear()
    assert refused["error"] == "StoreReadOnly"
    assert str(path) in refused["text"]
    reader = await peer(prefix=prefix, mode="ro")
    assert await reader.hear() == {"owner": "", "socket": ""}
    assert await reader.ask("read", "dgm_7") == ["x" * 5000]
    assert (await reader.ask("append", "dgm_7", 1, 2, ["x"]))["error"] == "StoreReadOnly"
    assert (await reader.ask("acquire", "dgm_7"))["error"] == "StoreReadOnly"


async def test_a_read_only_disk_on_which_a_process_crashed_can_be_read(
    path: Path, runtime: Path, peer: Any
) -> None:
    writer = await peer()
    await writer.hear()
    await writer.ask("create", "one")
    await writer.ask("append", "dgm_one", 1, 1, ["only in the log"])
    await writer.kill()
    folder = path.parent
    prefix = mounting(f"mount --bind {folder} {folder} && mount -o remount,ro,bind {folder}")
    reader = await peer(prefix=prefix, mode="ro")
    await reader.hear()
    assert await reader.ask("read", "dgm_one") == ["only in the log"]


async def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path, runtime: Path, peer: Any) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    prefix = mounting(f"mount -t tmpfs -o ro tmpfs {disk}")
    refused = await (await peer(disk / "new" / "dragoman.db", prefix=prefix)).hear()
    assert refused["error"] == "StoreReadOnly"
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable):
        await SqliteStore.open(tmp_path / "file" / "dragoman.db", runtime)


async def test_a_runtime_folder_that_cannot_be_made_is_named(tmp_path: Path, path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match="file/run"):
        await SqliteStore.open(path, tmp_path / "file" / "run")


async def test_reading_where_nothing_is_makes_nothing(path: Path, runtime: Path) -> None:
    with pytest.raises(StoreUnavailable, match="no session store"):
        await SqliteStore.open(path, runtime, mode="ro")
    assert not path.parent.exists()
    assert not runtime.exists()


async def test_a_reader_sees_what_another_process_writes(
    store: SqliteStore, path: Path, runtime: Path
) -> None:
    session = await begin(store)
    reader = await SqliteStore.open(path, runtime, mode="ro")
    await append(store, session, 1, [b"fresh"])
    assert numbered(await reader.read(session, 0, 100)) == {1: b"fresh"}
    with pytest.raises(StoreReadOnly):
        await reader.delete(session)
    assert isinstance(await append(reader, session, 2, [b"x"]), StoreReadOnly)
    await reader.close()


async def test_events_wait_for_a_lock_that_others_hold_and_requests_are_refused(
    path: Path, runtime: Path
) -> None:
    store = await SqliteStore.open(path, runtime, busy_seconds=0.05)
    session = await begin(store)
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    waiting = asyncio.ensure_future(append(store, session, 1, [b"waits"]))
    with pytest.raises(StoreBusy):
        await store.create(record("two"))
    assert await store.last_seq(session) == 0 and not waiting.done()
    with pytest.raises(StoreBusy):
        await SqliteStore.open(path, runtime, busy_seconds=0.05)
    blocker.execute("COMMIT")
    blocker.close()
    assert await append(store, session, 2, [b"x"]) is None
    assert await waiting is None
    assert numbered(await read_all(store, session)) == {1: b"waits", 2: b"x"}
    assert len(list((path.parent / "owners").glob("*.lock"))) == 1
    await store.close()


async def test_two_processes_write_at_once_without_loss(store: SqliteStore, peer: Any) -> None:
    other = await peer()
    await other.hear()
    await store.create(record("theirs"))
    session = await begin(store)
    other.tell("stream", "dgm_theirs")
    for seq in range(1, 301):
        assert await append(store, session, seq, [b"mine"]) is None
    heard = await other.kill()
    assert all(isinstance(one, list) for one in heard)
    theirs = numbered(await read_all(store, "dgm_theirs"))
    assert len(theirs) >= max((last for _, last in heard), default=0)
    assert len(numbered(await read_all(store, session))) == 300


async def test_full_sync_can_be_asked_for(path: Path, runtime: Path) -> None:
    store = await SqliteStore.open(path, runtime, sync="full")
    session = await begin(store)
    assert await append(store, session, 1, [b"x"]) is None
    level = await store._write(lambda c: c.execute("PRAGMA synchronous").fetchone()[0])
    assert level == 2
    await store.close()


async def test_opening_does_not_depend_on_the_number_of_sessions(tmp_path: Path, runtime: Path) -> None:
    few, many = tmp_path / "few" / "dragoman.db", tmp_path / "many" / "dragoman.db"

    async def fill(path: Path, sessions: int) -> None:
        store = await SqliteStore.open(path, runtime)
        await asyncio.gather(*(store.create(record(f"{n}", n % 1440)) for n in range(sessions)))
        await store.close()

    async def work(path: Path) -> float:
        begun = time.process_time()
        store = await SqliteStore.open(path, runtime)
        await store.list()
        spent = time.process_time() - begun
        await store.close()
        return spent

    await fill(few, 100)
    await fill(many, 5000)
    # Work done and not time passed, by turns: what else the machine does must not count.
    rounds = [(await work(few), await work(many)) for _ in range(25)]
    assert min(spent for _, spent in rounds) <= 1.5 * min(spent for spent, _ in rounds)


async def test_events_do_not_wait_for_ever_for_a_lock(
    path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BUSY_PATIENCE", 0.2)
    store = await SqliteStore.open(path, runtime, busy_seconds=0.02)
    session = await begin(store)
    with closing(sqlite3.connect(path, isolation_level=None)) as blocker:
        blocker.execute("BEGIN IMMEDIATE")
        assert isinstance(await append(store, session, 1, [b"x"]), StoreBusy)
    await store.close()


async def test_closing_does_not_wait_for_a_lock(path: Path, runtime: Path) -> None:
    store = await SqliteStore.open(path, runtime, busy_seconds=0.02)
    session = await begin(store)
    with closing(sqlite3.connect(path, isolation_level=None)) as blocker:
        blocker.execute("BEGIN IMMEDIATE")
        waiting = asyncio.ensure_future(append(store, session, 1, [b"x"]))
        await asyncio.sleep(0)
        await asyncio.wait_for(store.close(), 10)
        assert isinstance(await waiting, StoreBusy)


async def test_what_was_deleted_is_not_left_in_the_file(path: Path, runtime: Path) -> None:
    store = await SqliteStore.open(path, runtime)
    session = await begin(store)
    await append(store, session, 1, [b"a secret that somebody typed " * 50])
    await store.close()
    assert b"somebody typed" in path.read_bytes()
    store = await SqliteStore.open(path, runtime)
    await store.delete(session)
    await store.close()
    assert b"somebody typed" not in path.read_bytes()
