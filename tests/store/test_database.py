"""Files that are damaged, foreign, full, locked, read-only or of another version."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dragoman.gateway.ports.store import (
    Lease,
    OutcomeUnknown,
    SchemaTooNew,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from dragoman.store import FileStore, database, limits
from dragoman.store.failure import explain
from dragoman.store.writer import Append, Writer
from support.store.small_disk import mounting
from support.store.store_process import append, begin, numbered, read_all, record


async def refusal(path: Path, runtime: Path, **options: Any) -> StoreError:
    """Why the file does not open; it must be left as it was."""
    before = path.read_bytes()
    with pytest.raises(StoreError) as caught:
        await FileStore.open(path, runtime, **options)
    assert path.read_bytes() == before
    assert str(path) in str(caught.value)
    return caught.value


async def filled(path: Path, runtime: Path) -> None:
    store = await FileStore.open(path, runtime)
    for n in range(50):
        session = await begin(store, f"{n}", minute=n)
        await append(store, session, 1, [b"x" * 5000])
    await store.close()


async def test_a_new_store_is_private_and_leaves_nothing_else_behind(path: Path, runtime: Path) -> None:
    await filled(path, runtime)
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(file.name for file in path.parent.iterdir()) == [path.name, "gateways.lock", "journal"]
    assert all(file.stat().st_mode & 0o077 == 0 for file in path.parent.rglob("*"))


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
    connection.execute(f"PRAGMA user_version = {database.VERSION + 1}")
    connection.close()
    newer = await refusal(path, runtime, mode=mode)
    assert isinstance(newer, SchemaTooNew)
    assert "Upgrade Dragoman" in str(newer)


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
    assert await reader.hear() == {"owner": "", "address": ""}
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
        await FileStore.open(tmp_path / "file" / "dragoman.db", runtime)


async def test_a_runtime_folder_that_cannot_be_made_is_named(tmp_path: Path, path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match="file/run"):
        await FileStore.open(path, tmp_path / "file" / "run")


async def test_reading_where_nothing_is_makes_nothing(path: Path, runtime: Path) -> None:
    with pytest.raises(StoreUnavailable, match="no session store"):
        await FileStore.open(path, runtime, mode="ro")
    assert not path.parent.exists()
    assert not runtime.exists()


async def test_a_reader_sees_what_another_process_writes(store: FileStore, path: Path, runtime: Path) -> None:
    session = await begin(store)
    reader = await FileStore.open(path, runtime, mode="ro")
    await append(store, session, 1, [b"fresh"])
    assert numbered(await reader.read(session, 0, 100)) == {1: b"fresh"}
    with pytest.raises(StoreReadOnly):
        await reader.delete(session)
    assert isinstance(await append(reader, session, 2, [b"x"]), StoreReadOnly)
    await reader.close()


async def test_events_do_not_wait_for_a_directory_that_others_keep_locked(path: Path, runtime: Path) -> None:
    store = await FileStore.open(path, runtime, busy_seconds=0.05)
    session = await begin(store)
    with closing(sqlite3.connect(path, isolation_level=None)) as blocker:
        blocker.execute("BEGIN IMMEDIATE")
        assert await append(store, session, 1, [b"does not wait"]) is None
        with pytest.raises(StoreBusy):
            await store.create(record("two"))
        assert not (path.parent / "journal" / "dgm_two").exists()
        assert numbered(await read_all(store, session)) == {1: b"does not wait"}
    await store.create(record("two"))
    await store.close()


async def test_two_processes_write_at_once_without_loss(store: FileStore, peer: Any) -> None:
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


async def test_full_sync_shows_nothing_that_is_not_on_the_disk(
    path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: synced.append(os.fstat(descriptor).st_size))
    store = await FileStore.open(path, runtime, sync="full")
    session = await begin(store)
    appends = [asyncio.ensure_future(append(store, session, seq, [b"x"])) for seq in range(1, 101)]
    assert set(await asyncio.gather(*appends)) == {None}
    (file,) = (path.parent / "journal" / session).glob("*.log")
    assert synced[-1] == file.stat().st_size
    assert len(synced) < 20  # what comes while one is under way goes together
    assert len(numbered(await read_all(store, session))) == 100
    await store.close()


async def test_full_sync_flushes_the_files_of_all_sessions_together(
    path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    running, going_on = threading.Event(), threading.Event()

    def flush(descriptor: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).parent.name)
        running.set()
        assert going_on.wait(30)

    monkeypatch.setattr(os, "fdatasync", flush)
    store = await FileStore.open(path, runtime, sync="full")
    sessions = [await begin(store, name) for name in ("a", "b", "c")]
    told: list[tuple[str, int]] = []
    finished = asyncio.Event()

    def tell(session: str, seq: int) -> Any:
        def done(error: StoreError | None) -> None:
            assert error is None
            told.append((session, seq))
            if len(told) == 16:
                finished.set()

        return done

    store.append(sessions[0], 1, 1, [b"first"], tell(sessions[0], 1))
    await asyncio.to_thread(running.wait, 30)
    asked = [(session, seq) for seq in range(2, 7) for session in sessions]
    for session, seq in asked:
        first = seq if session == sessions[0] else seq - 1
        store.append(session, 1, first, [b"x"], tell(session, seq))
    assert told == []
    going_on.set()
    await asyncio.wait_for(finished.wait(), 30)
    assert told == [(sessions[0], 1), *asked]
    assert synced[0] == sessions[0] and sorted(synced[1:]) == sessions  # each once for all that waited
    await store.close()


async def test_full_sync_flushes_the_folder_of_a_new_session(
    path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    real = os.fsync

    def flush(descriptor: int) -> None:
        flushed.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", flush)
    store = await FileStore.open(path, runtime, sync="full")
    session = await begin(store)
    assert flushed == ["journal"]
    assert await append(store, session, 1, [b"x"]) is None
    assert flushed == ["journal", session]
    await store.close()


async def test_a_number_whose_flush_fails_is_not_told_as_stored(
    path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await FileStore.open(path, runtime, sync="full")
    session = await begin(store)
    assert await append(store, session, 1, [b"kept"]) is None
    seen: list[int] = []

    def fail(descriptor: int) -> None:
        seen.append(store._owned[session].writer.last_seq)
        raise OSError(errno.EIO, "broken")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", fail)
        assert await append(store, session, 2, [b"lost"]) is not None
    assert seen == [1]
    await store.close()


async def test_what_cannot_be_brought_to_the_disk_is_not_stored(
    path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await FileStore.open(path, runtime, sync="full")
    session = await begin(store)
    assert await append(store, session, 1, [b"kept"]) is None
    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", fail_with(errno.EIO))
        assert isinstance(await append(store, session, 2, [b"lost"]), StoreUnavailable)
        broken.setattr(os, "ftruncate", fail_with(errno.EIO))
        assert isinstance(await append(store, session, 2, [b"unknown"]), OutcomeUnknown)
    assert await append(store, session, 2, [b"unknown"]) is None
    assert numbered(await read_all(store, session)) == {1: b"kept", 2: b"unknown"}
    await store.close()


def fail_with(number: int) -> Any:
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


async def test_opening_does_not_depend_on_the_number_of_sessions(tmp_path: Path, runtime: Path) -> None:
    few, many = tmp_path / "few" / "dragoman.db", tmp_path / "many" / "dragoman.db"

    async def fill(path: Path, sessions: int) -> None:
        store = await FileStore.open(path, runtime)
        await asyncio.gather(*(store.create(record(f"{n}", n % 1440)) for n in range(sessions)))
        await store.close()

    async def work(path: Path) -> float:
        begun = time.process_time()
        store = await FileStore.open(path, runtime)
        await store.list()
        spent = time.process_time() - begun
        await store.close()
        return spent

    await fill(few, 100)
    await fill(many, 5000)
    # Work done and not time passed, by turns: what else the machine does must not count.
    rounds = [(await work(few), await work(many)) for _ in range(25)]
    assert min(spent for _, spent in rounds) <= 1.5 * min(spent for spent, _ in rounds)


async def test_closing_does_not_wait_for_ever_for_a_lock(path: Path, runtime: Path) -> None:
    store = await FileStore.open(path, runtime, busy_seconds=0.02)
    session = await begin(store)
    with closing(sqlite3.connect(path, isolation_level=None)) as blocker:
        blocker.execute("BEGIN IMMEDIATE")
        assert await append(store, session, 1, [b"x"]) is None
        await asyncio.wait_for(store.close(), 10)
    store = await FileStore.open(path, runtime)
    assert isinstance(await store.acquire(session), Lease)
    await store.close()


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, StoreFull),
        (errno.EDQUOT, StoreFull),
        (errno.EROFS, StoreReadOnly),
        (errno.EIO, StoreUnavailable),
    ],
)
async def test_a_write_that_fails_is_told_and_leaves_no_trace(
    store: FileStore, path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[StoreError]
) -> None:
    session = await begin(store)
    await append(store, session, 1, [b"before"])
    (file,) = (path.parent / "journal" / session).glob("*.log")
    before, real = file.read_bytes(), os.pwritev

    def partly(descriptor: int, parts: list[bytes], offset: int) -> int:
        real(descriptor, [b"".join(parts)[:-3]], offset)
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as broken:
        broken.setattr(os, "pwritev", partly)
        error = await append(store, session, 2, [b"lost", b"lost too"])
    assert isinstance(error, kind) and session in str(error)
    assert file.read_bytes() == before
    assert await append(store, session, 2, [b"after"]) is None
    assert numbered(await read_all(store, session)) == {1: b"before", 2: b"after"}


async def test_a_disk_that_takes_a_part_is_asked_for_the_rest(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.pwritev
    monkeypatch.setattr(os, "pwritev", lambda fd, parts, offset: real(fd, [b"".join(parts)[:7]], offset))
    session = await begin(store)
    assert await append(store, session, 1, [b"in two", b"pieces"]) is None
    assert numbered(await read_all(store, session)) == {1: b"in two", 2: b"pieces"}


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
async def test_a_disk_without_locks_is_told_with_what_to_do(
    path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(descriptor: int, kind: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(StoreUnavailable, match=r"no file locks.*XDG_STATE_HOME"):
        await FileStore.open(path, runtime)
    assert not path.exists()  # found before SQLite stumbles over it


async def test_what_was_deleted_is_not_left_in_the_file(path: Path, runtime: Path) -> None:
    store = await FileStore.open(path, runtime)
    session = await begin(store)
    await append(store, session, 1, [b"a secret that a person typed " * 50])
    await store.close()

    def files() -> list[bytes]:
        return [file.read_bytes() for file in path.parent.rglob("*") if file.is_file()]

    assert b"a person typed" in b"".join(files())
    store = await FileStore.open(path, runtime)
    await store.delete(session)
    await store.close()
    assert b"a person typed" not in b"".join(files())
    assert not list((path.parent / "journal").iterdir())


def test_a_folder_that_may_not_be_read_is_not_called_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(tmp_path / "journal"))
    assert str(explain(error, tmp_path)) == f"{tmp_path}/journal cannot be written: permission denied."
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # also for root
    assert str(explain(error, tmp_path)) == f"{tmp_path}/journal cannot be read: permission denied."


async def test_events_that_a_failed_flush_removed_are_not_told_as_stored(
    path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The flush before a new segment fails and the one at the end of the group succeeds, on a file that was cut."""
    monkeypatch.setattr(limits, "SEGMENT_BYTES", 100)
    store = await FileStore.open(path, runtime, sync="full")
    session = await begin(store)
    outcomes = iter((errno.EIO, 0, 0, 0))

    def flush(descriptor: int) -> None:
        if number := next(outcomes, 0):
            raise OSError(number, os.strerror(number))

    appends = [Append(1, [b"x" * 200], 200, lambda error: None), Append(2, [b"y"], 1, lambda error: None)]
    writer = store._owned[session].writer
    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", flush)
        writer.write_all(appends)
    assert writer.last_seq == 0
    assert all(one.outcome is not None for one in appends)
    await store.close()


async def test_a_session_is_drained_only_when_no_append_was_queued_meanwhile(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first append is answered with another one, as a journal does that stores what waited."""
    session = await begin(store)
    owned, real = store._owned[session], Writer.write_all
    goes_on, again = threading.Event(), asyncio.Event()

    def write_all(writer: Writer, appends: Any) -> None:
        assert appends[0].first_seq == 1 or goes_on.wait(30)
        real(writer, appends)

    def append_again(error: StoreError | None) -> None:
        owned.append(2, [b"second"], lambda error: again.set())
        asyncio.get_running_loop().call_later(0.1, goes_on.set)

    monkeypatch.setattr(Writer, "write_all", write_all)
    monkeypatch.setattr(store._disk, "took", lambda seconds, size: None)
    store._disk.inline = False
    owned.append(1, [b"first"], append_again)
    await asyncio.wait_for(owned.drained(), 30)
    assert again.is_set()
