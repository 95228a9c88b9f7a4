"""Back-up and restore of a whole state folder."""

from __future__ import annotations

import asyncio
import gzip
import io
import sqlite3
import tarfile
import zlib
from contextlib import closing, suppress
from pathlib import Path

import pytest

from dragoman.gateway.ports.store import Lease, StoreBusy, StoreCorrupt, StoreUnavailable
from dragoman.store import FileStore, limits, segments
from dragoman.store.writer import Writer
from dragoman.upkeep import archive
from dragoman.upkeep.restore import restore
from support.store.old_store import OldStore
from support.store.store_process import StoreProcess, append, begin, numbered, read_all, record

EVENTS = {seq: b"%d" % seq for seq in range(1, 101)}


def quiet(line: str) -> None:
    """Progress is for people."""


async def opened(state: Path) -> FileStore:
    return await FileStore.open(state / "dragoman.db", state.parent / "run")


@pytest.mark.parametrize("name", ["backup.tar", "backup.tar.gz"])
async def test_everything_is_back_after_a_restore(
    state: Path, tmp_path: Path, filled: list[str], name: str
) -> None:
    file = tmp_path / name
    manifest = archive.back_up(state, file, quiet)
    assert manifest.sessions == 3
    assert file.stat().st_mode & 0o777 == 0o600
    assert not list(tmp_path.glob(".backup*"))
    elsewhere = tmp_path / "elsewhere" / "state"
    restored, former = restore(file, elsewhere, quiet)
    assert (restored, former) == (manifest, None)
    assert (elsewhere / "tokens.json").read_text() == '{"secret": 1}'
    assert (elsewhere / "audit" / "one.ndjson").read_text() == "{}\n"
    assert not (elsewhere / "run").exists()
    assert all(path.stat().st_mode & 0o077 == 0 for path in elsewhere.rglob("*"))
    store = await opened(elsewhere)
    for session in filled:
        assert numbered(await read_all(store, session)) == EVENTS
        found = await store.get(session)
        assert found is not None and found.epoch > 1_700_000_000  # one that no other timeline had
        assert isinstance(await store.acquire(session), Lease)
    await store.close()


async def test_a_backup_is_made_while_processes_write(state: Path, tmp_path: Path, filled: list[str]) -> None:
    writer = await StoreProcess.start(state / "dragoman.db", tmp_path / "run")
    await writer.hear()
    writer.tell("stream", *filled)
    for n in range(5):
        heard = [await writer.hear() for _ in range(20)]
        file = tmp_path / f"{n}.tar"
        await asyncio.to_thread(archive.back_up, state, file, quiet)
        restore(file, tmp_path / f"restored-{n}", quiet)
        store = await opened(tmp_path / f"restored-{n}")
        for session in filled:
            found = numbered(await read_all(store, session))
            assert list(found) == list(range(1, len(found) + 1))
            assert len(found) >= max((last for each, last in heard if each == session), default=0)
            lease = await store.acquire(session)
            assert isinstance(lease, Lease) and not lease.torn
        await store.close()
    await writer.kill()


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_segment_begun_while_the_end_is_looked_for_leaves_no_hole(
    state: Path, tmp_path: Path, filled: list[str], monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    find_end = segments.Reader.end
    begun: list[str] = []

    def end(reader: segments.Reader, folder: Path) -> segments.End:
        found = find_end(reader, folder)
        if folder.name == filled[0] and not begun:
            begun.append(folder.name)
            writer = Writer(folder, found, 1)
            writer.write(101, [b"101"])
            with monkeypatch.context() as small:
                small.setattr(limits, "SEGMENT_BYTES", 1)
                writer.write(102, [b"102"])
            writer.close()
        return find_end(reader, folder) if when == "before" else found

    with monkeypatch.context() as patched:
        patched.setattr(segments.Reader, "end", end)
        archive.back_up(state, tmp_path / "backup.tar", quiet)
    assert begun and len(list((state / "journal" / filled[0]).glob("*.log"))) == 2
    restore(tmp_path / "backup.tar", tmp_path / "elsewhere", quiet)
    store = await opened(tmp_path / "elsewhere")
    found = numbered(await read_all(store, filled[0]))
    assert found == (EVENTS if when == "after" else {**EVENTS, 101: b"101", 102: b"102"})
    await store.close()


async def test_a_segment_that_is_a_link_is_backed_up_as_a_file(
    state: Path, tmp_path: Path, filled: list[str]
) -> None:
    segment = state / "journal" / filled[0] / "000000000001-1.log"
    for file in (segment, state / "tokens.json"):
        file.rename(tmp_path / file.name)
        file.symlink_to(tmp_path / file.name)
    (state / "audit" / "nowhere.ndjson").symlink_to(tmp_path / "nowhere")
    archive.back_up(state, tmp_path / "backup.tar", quiet)
    restore(tmp_path / "backup.tar", tmp_path / "elsewhere", quiet)
    assert not [path for path in (tmp_path / "elsewhere").rglob("*") if path.is_symlink()]
    assert (tmp_path / "elsewhere" / "tokens.json").read_text() == '{"secret": 1}'
    store = await opened(tmp_path / "elsewhere")
    assert numbered(await read_all(store, filled[0])) == EVENTS
    await store.close()


async def test_a_session_deleted_before_its_journal_is_copied_is_not_restored(
    state: Path, tmp_path: Path, filled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(state)
    listed = record("listed", agent_session_id="theirs")  # of an agent's own list: it never had a journal
    await store.create(listed)
    loop = asyncio.get_running_loop()
    journal = archive._journal

    def delete_first(home: Path) -> list[tuple[str, Path, int | None]]:
        found = journal(home)
        if home.name == filled[0]:  # its own journal is listed, and the next one's is not
            for session in filled[:2]:
                asyncio.run_coroutine_threadsafe(store.delete(session), loop).result()
        return found

    monkeypatch.setattr(archive, "_journal", delete_first)
    manifest = await asyncio.to_thread(archive.back_up, state, tmp_path / "backup.tar", quiet)
    await store.close()
    assert manifest.sessions == 2
    restore(tmp_path / "backup.tar", tmp_path / "elsewhere", quiet)
    store = await opened(tmp_path / "elsewhere")
    assert {each.id for each in (await store.list()).records} == {filled[2], listed.id}
    await store.close()


async def test_a_restore_waits_until_no_process_uses_the_folder(
    state: Path, tmp_path: Path, filled: list[str]
) -> None:
    file = tmp_path / "backup.tar"
    archive.back_up(state, file, quiet)
    store = await opened(state)
    with pytest.raises(StoreBusy, match="stop every Dragoman process"):
        restore(file, state, quiet, replace=True)
    await store.close()
    restore(file, state, quiet, replace=True)


async def test_a_folder_that_is_not_empty_is_replaced_only_when_asked(
    state: Path, tmp_path: Path, filled: list[str]
) -> None:
    file = tmp_path / "backup.tar"
    archive.back_up(state, file, quiet)
    store = await opened(state)
    lease = await store.acquire(filled[0])
    assert isinstance(lease, Lease)
    await append(store, filled[0], 101, [b"after the back-up"], epoch=lease.epoch)
    await begin(store, "later")
    await store.close()
    with pytest.raises(StoreUnavailable, match="--replace"):
        restore(file, state, quiet)
    _, former = restore(file, state, quiet, replace=True)
    assert former is not None and (former / "journal" / "dgm_later").exists()
    store = await opened(state)
    assert numbered(await read_all(store, filled[0])) == EVENTS
    again = await store.acquire(filled[0])
    assert isinstance(again, Lease)
    assert await append(store, filled[0], 101, [b"another"], epoch=again.epoch) is None
    # A reader who saw event 101 before does not take this one for it.
    assert await store.common_seq(filled[0], lease.epoch, 101) == 100
    await store.close()


@pytest.mark.parametrize("mark", [b"SQLite format", b"#dragoman journal", b'{"format"', b"ustar"])
def test_a_damaged_backup_is_refused_and_nothing_is_touched(
    state: Path, tmp_path: Path, filled: list[str], mark: bytes
) -> None:
    file = tmp_path / "backup.tar"
    archive.back_up(state, file, quiet)
    data = bytearray(file.read_bytes())
    data[data.rindex(mark) + 3] ^= 0xFF
    file.write_bytes(data)
    before = {path: path.stat().st_mtime_ns for path in state.rglob("*") if path.name != "gateways.lock"}
    with pytest.raises(StoreCorrupt, match=r"backup\.tar"):
        restore(file, state, quiet, replace=True)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert [path.name for path in tmp_path.iterdir() if "restoring" in path.name] == []


def test_a_truncated_and_a_foreign_file_are_refused(state: Path, tmp_path: Path, filled: list[str]) -> None:
    file = tmp_path / "backup.tar"
    archive.back_up(state, file, quiet)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(StoreCorrupt):
        restore(file, tmp_path / "new", quiet)
    (tmp_path / "text").write_text("hello " * 1000)
    with pytest.raises(StoreCorrupt, match="cannot be read as a back-up"):
        restore(tmp_path / "text", tmp_path / "new", quiet)


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "a/../../evil"])
def test_no_file_of_a_backup_leaves_the_folder(tmp_path: Path, name: str) -> None:
    file = tmp_path / "hostile.tar"
    with tarfile.open(file, "w") as hostile:
        member = tarfile.TarInfo(name)
        member.size = 4
        hostile.addfile(member, io.BytesIO(b"evil"))
    with pytest.raises(StoreCorrupt, match="outside of its folder"):
        restore(file, tmp_path / "inner" / "state", quiet)
    assert not list(tmp_path.rglob("evil"))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_a_backup_are_refused(tmp_path: Path, kind: bytes) -> None:
    file = tmp_path / "hostile.tar"
    with tarfile.open(file, "w") as hostile:
        member = tarfile.TarInfo("journal")
        member.type, member.linkname = kind, "/etc"
        hostile.addfile(member)
    with pytest.raises(StoreCorrupt, match="is no file"):
        restore(file, tmp_path / "state", quiet)


def test_an_existing_file_is_not_overwritten(state: Path, tmp_path: Path, filled: list[str]) -> None:
    file = tmp_path / "backup.tar"
    file.write_text("dear")
    with pytest.raises(StoreUnavailable, match="exists already"):
        archive.back_up(state, file, quiet)
    assert file.read_text() == "dear"
    with pytest.raises(StoreUnavailable, match="no sessions to back up"):
        archive.back_up(tmp_path / "nowhere", tmp_path / "other.tar", quiet)


async def test_journals_that_the_directory_does_not_know_are_backed_up_too(
    state: Path, tmp_path: Path, filled: list[str]
) -> None:
    with closing(sqlite3.connect(state / "dragoman.db")) as connection:
        connection.execute("DELETE FROM directory WHERE id = ?", (filled[0],))
        connection.commit()
    newer = state / "journal" / filled[1] / "000000000101-1.log"
    newer.write_text(f"#dragoman journal 7 {filled[1]}\nin words of the future\n")
    (state / "journal" / filled[2] / "lost.json").write_text("[]")
    assert archive.back_up(state, tmp_path / "backup.tar", quiet).sessions == 3
    elsewhere = tmp_path / "elsewhere"
    restore(tmp_path / "backup.tar", elsewhere, quiet)
    for session in filled:
        mine = {path.name: path.read_bytes() for path in (state / "journal" / session).iterdir()}
        theirs = {path.name: path.read_bytes() for path in (elsewhere / "journal" / session).iterdir()}
        assert theirs == {name: data for name, data in mine.items() if name != "lock"}


def test_a_store_that_is_not_converted_is_refused(state: Path, tmp_path: Path) -> None:
    OldStore(state / "dragoman.db").session("one", [[b"a"]])
    with pytest.raises(StoreUnavailable, match="not converted yet"):
        archive.back_up(state, tmp_path / "backup.tar", quiet)
    assert not list(tmp_path.glob("*backup*"))


def test_a_directory_that_is_missing_is_not_called_nothing(
    state: Path, tmp_path: Path, filled: list[str]
) -> None:
    (state / "dragoman.db").unlink()
    with pytest.raises(StoreUnavailable, match="dragoman doctor --fix"):
        archive.back_up(state, tmp_path / "backup.tar", quiet)


def test_a_backup_within_the_folder_does_not_contain_itself(state: Path, filled: list[str]) -> None:
    (state / "mine").mkdir()
    manifest = archive.back_up(state, state / "mine" / "backup.tar", quiet)
    assert not [name for name in manifest.files if name.startswith("mine/")]


def _flipped(packed: bytes, at: int) -> bytes | None:
    """The archive with one byte changed; None if it unpacks to the same."""
    data = bytearray(packed)
    data[at] ^= 0xFF
    with suppress(OSError, EOFError, zlib.error):
        if gzip.decompress(data) == gzip.decompress(packed):
            return None
    return bytes(data)


@pytest.mark.parametrize("place", range(0, 100, 7))
def test_a_packed_backup_that_is_damaged_anywhere_is_refused(
    state: Path, tmp_path: Path, filled: list[str], place: int
) -> None:
    file = tmp_path / "backup.tar.gz"
    archive.back_up(state, file, quiet)
    whole = file.read_bytes()
    at = len(whole) * place // 100 + 20
    while (
        data := _flipped(whole, at)
    ) is None:  # a few bytes of a packed file can be others and mean the same
        at += 1
    file.write_bytes(data)
    with pytest.raises(StoreCorrupt, match=r"backup\.tar\.gz"):
        restore(file, tmp_path / "new", quiet)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["gateways.lock"]
