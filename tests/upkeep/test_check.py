"""What is found wrong with a store, and put right."""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dragoman.gateway.ports.store import Lease, Row, SessionHeld, StoreBusy
from dragoman.store import FileStore, limits
from dragoman.upkeep import archive
from dragoman.upkeep.check import Finding, Fix, check
from support.store.old_store import OldStore
from support.store.store_process import StoreProcess, append, begin, numbered, read_all


def findings(state: Path) -> list[Finding | Fix]:
    """Without those that say that all is well."""
    found = check(state / "dragoman.db")
    return [each for each in found if isinstance(each, Fix) or each.level != "ok"]


def fix_all(state: Path) -> list[str]:
    """Repairs what can be, as it is found; what was found."""
    details = []
    for each in check(state / "dragoman.db"):
        if isinstance(each, Fix):
            details.append(each.finding.detail)
            each.do()
        else:
            assert each.level == "ok", each
    assert findings(state) == []
    return details


def lost(rows: list[Row]) -> list[tuple[int, int]]:
    return [(row.first_seq, row.last_seq) for row in rows if row.damaged]


@pytest.fixture
async def long(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A session with segments of ten events each, from 1 to 50."""
    monkeypatch.setattr(limits, "SEGMENT_BYTES", 100)
    store = await opened(state)
    session = await begin(store, "long")
    for first in range(1, 51, 10):
        await append(store, session, first, [b"%010d" % seq for seq in range(first, first + 10)])
    await store.close()
    assert len(files(state, session)) == 5
    return session


def files(state: Path, session: str) -> list[Path]:
    return sorted((state / "journal" / session).glob("*.log"))


async def opened(state: Path) -> FileStore:
    return await FileStore.open(state / "dragoman.db", state.parent / "run")


async def test_a_sound_store_has_no_findings(state: Path, filled: list[str]) -> None:
    assert findings(state) == []
    assert [each.about for each in check(state / "dragoman.db") if isinstance(each, Finding)] == [
        "disk",
        "directory",
    ]
    assert findings(state / "nowhere") == []


async def test_a_journal_that_the_directory_does_not_know_is_added_again(
    state: Path, filled: list[str]
) -> None:
    with closing(sqlite3.connect(state / "dragoman.db")) as connection:
        connection.execute("DELETE FROM directory")
        connection.commit()
    assert fix_all(state) == ["its journal is not in the directory"] * 3
    store = await opened(state)
    records = (await store.list()).records
    assert [(record.id, record.title, record.agent_session_id) for record in records] == [
        (f"dgm_{n}", f"Talk {n}", f"a{n}") for n in (2, 1, 0)
    ]
    lease = await store.acquire("dgm_1")
    assert isinstance(lease, Lease) and lease.last_seq == 100
    assert await append(store, "dgm_1", 101, [b"on"], epoch=lease.epoch) is None
    await store.close()


async def test_a_session_whose_journal_is_missing_goes_on_without_it(state: Path, filled: list[str]) -> None:
    shutil.rmtree(state / "journal" / filled[1])
    assert fix_all(state) == ["its journal is missing (events 1 to 100)"]
    store = await opened(state)
    assert lost(await read_all(store, filled[1])) == [(1, 100)]
    lease = await store.acquire(filled[1])
    assert isinstance(lease, Lease) and lease.last_seq == 100
    await store.close()


async def test_a_folder_whose_segments_are_all_gone_is_a_missing_journal(
    state: Path, filled: list[str]
) -> None:
    for file in files(state, filled[1]):
        file.unlink()
    assert fix_all(state) == ["its journal is missing (events 1 to 100)"]
    store = await opened(state)
    assert lost(await read_all(store, filled[1])) == [(1, 100)]
    await store.close()


@pytest.mark.parametrize(
    ("gone", "span"), [(0, (1, 10)), (2, (21, 30)), (4, (41, 50))], ids=["first", "middle", "last"]
)
async def test_a_session_goes_on_without_a_segment_that_is_missing(
    state: Path, long: str, gone: int, span: tuple[int, int]
) -> None:
    files(state, long)[gone].unlink()
    assert fix_all(state) == [f"events {span[0]} to {span[1]} are damaged or missing"]
    store = await opened(state)
    rows = await read_all(store, long)
    assert lost(rows) == [span]
    kept = [seq for seq in range(1, 51) if not span[0] <= seq <= span[1]]
    assert list(numbered([row for row in rows if not row.damaged])) == kept
    lease = await store.acquire(long)
    assert isinstance(lease, Lease) and lease.last_seq == 50
    assert await append(store, long, 51, [b"on"], epoch=lease.epoch) is None
    await store.close()
    (about,) = [each for each in check(state / "dragoman.db") if isinstance(each, Finding) and "on" in each.detail
                and each.about.startswith("session")]  # fmt: skip
    assert (about.level, about.detail) == (
        "ok",
        f"goes on without events {span[0]} to {span[1]}, which are lost",
    )


def test_damage_that_comes_later_is_told_although_an_earlier_one_was_accepted(state: Path, long: str) -> None:
    files(state, long)[1].unlink()
    fix_all(state)
    file = files(state, long)[2]
    file.write_bytes(file.read_bytes().replace(b"0000000035", b"000000003S"))
    assert fix_all(state) == ["events 31 to 40 are damaged or missing"]


async def test_events_that_retention_removed_are_not_missing(state: Path, long: str) -> None:
    store = await opened(state)
    assert await store.empty(long)
    await store.close()
    assert findings(state) == []


async def test_a_removal_that_was_interrupted_is_completed(state: Path, long: str) -> None:
    (state / "journal" / long / "000000000051-1.log").touch()
    files(state, long)[0].unlink()
    assert fix_all(state) == ["the removal of its old events was interrupted"]
    store = await opened(state)
    found = await store.get(long)
    assert found is not None and (found.first_seq, found.last_seq) == (11, 50)
    assert lost(await read_all(store, long)) == []
    await store.close()


async def test_a_directory_that_is_behind_the_files_of_a_live_session_is_no_finding(
    state: Path, filled: list[str], tmp_path: Path
) -> None:
    writer = await StoreProcess.start(state / "dragoman.db", tmp_path / "run")
    await writer.hear()
    writer.tell("stream", *filled)
    for _ in range(6):
        await writer.hear()
        assert findings(state) == []
    await writer.kill()


async def test_a_session_that_a_living_process_owns_is_left_alone(state: Path, long: str) -> None:
    store = await opened(state)
    assert isinstance(await store.acquire(long), Lease)
    files(state, long)[1].unlink()
    (found,) = findings(state)
    assert isinstance(found, Fix)
    with pytest.raises(SessionHeld, match=f"process {os.getpid()}-.* has it open"):
        found.do()
    await store.close()
    assert fix_all(state) == ["events 11 to 20 are damaged or missing"]


async def test_a_directory_that_is_missing_is_made_again_from_the_journals(
    state: Path, filled: list[str]
) -> None:
    (state / "dragoman.db").unlink()
    (state / "dragoman.db-wal").write_bytes(b"of the one that is lost")
    (found,) = findings(state)
    assert isinstance(found, Fix) and found.finding.level == "error"
    assert "is missing, and there are 3 journals" in found.finding.detail
    assert len(fix_all(state)) == 4
    store = await opened(state)
    records = (await store.list()).records
    assert [(record.id, record.title, record.last_seq) for record in records] == [
        (f"dgm_{n}", f"Talk {n}", 100) for n in (2, 1, 0)
    ]
    assert numbered(await read_all(store, filled[0])) == {seq: b"%d" % seq for seq in range(1, 101)}
    await store.close()


async def test_a_directory_is_not_made_again_while_a_process_uses_the_lost_one(
    state: Path, filled: list[str]
) -> None:
    store = await opened(state)
    (state / "dragoman.db").rename(state / "elsewhere")
    (found,) = findings(state)
    assert isinstance(found, Fix)
    with pytest.raises(StoreBusy):
        found.do()
    (state / "elsewhere").rename(state / "dragoman.db")
    await store.close()


@pytest.mark.parametrize("version", [1, 2])
def test_a_store_that_is_not_converted_yet_is_said_to_be_converted_at_the_next_start(
    state: Path, version: int
) -> None:
    old = OldStore(state / "dragoman.db", version=version)
    for n in range(3):
        old.session(f"{n}", [[b"a"]])
    (found,) = findings(state)
    assert isinstance(found, Finding) and found.level == "warning"
    assert found.detail == "3 sessions are of an older Dragoman and are converted at the next start"
    assert "restore" not in found.advice


@pytest.mark.parametrize("spoilt", ["missing", "no JSON", '{"agent": 7}', "not for SQL"])
async def test_a_journal_without_its_description_is_added_so_that_it_can_be_read_and_exported(
    state: Path, filled: list[str], spoilt: str
) -> None:
    description = state / "journal" / filled[0] / "session.json"
    facts = json.loads(description.read_text())
    if spoilt == "missing":
        description.unlink()
    else:
        description.write_text(json.dumps({**facts, "extra": "[1"}) if spoilt == "not for SQL" else spoilt)
    with closing(sqlite3.connect(state / "dragoman.db")) as connection:
        connection.execute("DELETE FROM directory WHERE id = ?", (filled[0],))
        connection.commit()
    (detail,) = fix_all(state)
    assert "its agent, folder and title are not known" in detail
    store = await opened(state)
    found = await store.get(filled[0])
    assert found is not None
    assert (found.agent, found.cwd, found.state, found.last_seq) == ("unknown", "/", "closed", 100)
    assert len((await store.list()).records) == 3
    assert len(numbered(await read_all(store, filled[0]))) == 100
    await store.close()


async def test_a_journal_whose_end_is_missing_too_is_added_with_the_numbers_that_it_had(
    state: Path, long: str
) -> None:
    store = await opened(state)
    lease = await store.acquire(long)
    assert isinstance(lease, Lease)
    await store.close()
    facts = json.loads((state / "journal" / long / "session.json").read_text())
    (state / "journal" / long / "session.json").write_text(json.dumps({**facts, "last_seq": 50}))
    with closing(sqlite3.connect(state / "dragoman.db")) as connection:
        connection.execute("DELETE FROM directory")
        connection.commit()
    files(state, long)[4].unlink()
    assert fix_all_twice(state) == [
        "its journal is not in the directory",
        "events 41 to 50 are damaged or missing",
    ]


def fix_all_twice(state: Path) -> list[str]:
    """What the first repair brings to light is repaired by the next."""
    details = []
    for each in [*findings(state)]:
        assert isinstance(each, Fix)
        details.append(each.finding.detail)
        each.do()
    return details + fix_all(state)


def test_a_folder_that_is_no_session_is_named_and_left_alone(state: Path, filled: list[str]) -> None:
    (state / "journal" / "my notes!").mkdir()
    (found,) = findings(state)
    assert isinstance(found, Finding) and "not the id of a session" in found.detail


def test_what_an_interrupted_restore_left_is_removed(state: Path, filled: list[str]) -> None:
    (state / ".restore" / "new").mkdir(parents=True)
    (detail,) = fix_all(state)
    assert "before it changed anything" in detail
    assert not (state / ".restore").exists()


def test_a_folder_without_anything_in_it_is_removed(state: Path, filled: list[str]) -> None:
    nothing = state / "journal" / "dgm_nothing"
    nothing.mkdir()
    assert findings(state) == [], "it may be the beginning of a session"
    os.utime(nothing, (0, 0))
    assert fix_all(state) == ["a folder without events or a record"]


def test_damage_is_found_wherever_it_is(state: Path, filled: list[str]) -> None:
    (file,) = files(state, filled[0])
    file.write_bytes(file.read_bytes().replace(b"\n50\n", b"\n5O\n"))
    (torn,) = files(state, filled[1])
    torn.write_bytes(torn.read_bytes() + b"#101 1 5 1 2026")
    (newer,) = files(state, filled[2])
    newer.write_bytes(newer.read_bytes().replace(b"journal 1", b"journal 7", 1))
    found = [each.finding if isinstance(each, Fix) else each for each in findings(state)]
    assert [(each.level, each.about.removeprefix("session ")) for each in found] == [
        ("error", filled[0]), ("warning", filled[1]), ("error", filled[2]),
    ]  # fmt: skip
    assert "events 1 to 100 are damaged" in found[0].detail
    assert "cut off: 15 bytes" in found[1].detail
    assert "never shown" in found[1].advice and "begins a new segment" in found[1].advice
    assert "newer Dragoman" in found[2].detail


async def test_a_file_that_was_cut_below_what_the_directory_knows_is_a_loss(
    state: Path, filled: list[str]
) -> None:
    (file,) = files(state, filled[1])
    file.write_bytes(file.read_bytes()[:-1])
    assert fix_all(state) == ["events 1 to 100 are damaged or missing"]
    store = await opened(state)
    lease = await store.acquire(filled[1])
    assert isinstance(lease, Lease) and lease.last_seq == 100
    await store.close()


def test_a_directory_that_cannot_be_read_is_told(state: Path, filled: list[str]) -> None:
    (state / "dragoman.db").write_bytes(b"not a database" * 100)
    (found,) = [each for each in findings(state) if isinstance(each, Finding)]
    assert (found.level, found.about) == ("error", "directory")
    assert "dragoman restore" in found.advice


async def test_a_live_session_is_not_called_torn(state: Path, filled: list[str]) -> None:
    store = await opened(state)
    lease = await store.acquire(filled[0])
    assert isinstance(lease, Lease)
    (file,) = (state / "journal" / filled[0]).glob("*.log")
    with file.open("ab") as writing:
        writing.write(b"#101 1 5 2 2026")
    assert findings(state) == []
    assert len(numbered(await read_all(store, filled[0]))) == 100
    await store.close()


@pytest.mark.parametrize("kind", ["pipe", "folder", "socket", "link"])
async def test_what_is_named_like_a_segment_and_is_not_a_file_is_missing_and_said_to_be_removed(
    state: Path, tmp_path: Path, long: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = files(state, long)[-1]
    file.unlink()
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    elif kind == "link":
        file.symlink_to("nowhere")
    else:
        monkeypatch.chdir(file.parent)  # the name of a socket is short
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(file.name)
    (found,) = findings(state)
    assert isinstance(found, Finding) and found.level == "error"
    assert str(file) in found.detail and "remove" in found.advice
    archive.back_up(state, tmp_path / "backup.tar", lambda line: None)
    store = await opened(state)
    assert lost(await read_all(store, long)) == [(41, 50)]
    await store.close()
    file.rmdir() if kind == "folder" else file.unlink()
    assert fix_all(state) == ["events 41 to 50 are damaged or missing"]


def test_what_to_do_about_a_file_that_cannot_be_read_is_said(
    state: Path, filled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (file,) = files(state, filled[1])
    open_file = Path.open

    def refuse(path: Path, *args: Any, **kwargs: Any) -> Any:
        if path == file:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return open_file(path, *args, **kwargs)

    monkeypatch.setattr(Path, "open", refuse)
    (found,) = findings(state)
    assert isinstance(found, Finding)
    assert found.detail == f"{file} cannot be read: Permission denied"
    assert found.advice.startswith("make it readable for the user ")
