"""Files that are put in place of the audit's own: whatever they are, readers end, and the check names them."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from dragoman.audit import folder as places
from dragoman.audit import record
from dragoman.audit.browse.page import read_page
from dragoman.audit.chain import Chain, end_dead_chains
from dragoman.audit.errors import AuditError
from dragoman.audit.keys import KeyProblem, load_key
from dragoman.audit.log import AuditLog
from dragoman.audit.read import Follower, Query, latest, query
from dragoman.audit.verify import verify
from dragoman.cli.commands import root
from dragoman.config.audit_model import AuditConfig

SHORT = 1 << 20
Attack = Callable[[Path], None]


@pytest.fixture
def folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An audit of two chains with several segments each, the second one killed."""
    monkeypatch.setattr("dragoman.audit.chain.SEGMENT_BYTES", 1000)
    monkeypatch.setattr("dragoman.audit.seek.WORTH", 1000)
    monkeypatch.setenv("DRAGOMAN_HOME", str(home))
    for ended in (True, False):
        chain = Chain(home / "audit")
        for number in range(20):
            chain.append("decision", {"session": f"dgm_{number % 2}", "what": number})
        chain.close() if ended else chain._close_files()
    return home / "audit"


def segment(folder: Path, chain: int = 0, place: int = 1) -> Path:
    begun = [record.read_record(line) for line in places.read_index(folder)[0] if b'"begun"' in line]
    return places.segments(folder / begun[chain]["chain"])[place]


def fifo(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def directory(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


def endless(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


def linked(path: Path) -> None:
    """A link to what was there."""
    path.rename(path.with_suffix(".old"))
    path.symlink_to(path.with_suffix(".old"))


def huge(path: Path) -> None:
    """A line of a gigabyte, without its end."""
    with path.open("ab") as file:
        file.truncate(path.stat().st_size + (1 << 30))


def read_all(folder: Path) -> None:
    """All that reads an audit."""
    list(query(folder, Query()))
    list(query(folder, Query(session="dgm_1")))
    latest(folder, 10)
    Follower(folder).new()
    read_page(folder, Query(), 10, None)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "attack", [fifo, directory, endless, linked, huge], ids=lambda attack: attack.__name__
)
@pytest.mark.parametrize("what", ["segment", "last segment", "places", "index"])
def test_something_else_in_the_place_of_a_file(
    folder: Path, attack: Attack, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "LONGEST", SHORT)
    path = {
        "segment": segment(folder),
        "last segment": segment(folder, 1, -1),
        "places": segment(folder).with_suffix(".seek"),
        "index": folder / places.INDEX,
    }[what]
    attack(path)
    if what == "index":
        with pytest.raises((OSError, record.Broken)):
            places.last_index_line(folder)
        assert not verify(folder).consistent
        return
    read_all(folder)
    report = verify(folder)
    assert report.consistent == (what == "places"), report.problems
    end_dead_chains(folder)
    done = CliRunner().invoke(root, ["audit", "verify"])
    assert done.exit_code == (0 if what == "places" else 1), done.output


@pytest.mark.timeout(60)
@pytest.mark.parametrize("attack", [fifo, directory, endless], ids=lambda attack: attack.__name__)
def test_something_else_in_the_place_of_the_key(folder: Path, attack: Attack) -> None:
    for name in ("key", "key.pub"):
        attack(folder / name)
    with pytest.raises((KeyProblem, OSError)):
        load_key(folder)
    assert "is not known here" in str(verify(folder).problems)
    for words in (["key"], ["key", "--new"], ["verify"]):
        assert CliRunner().invoke(root, ["audit", *words]).exit_code == 1


def test_segments_that_change_places_between_chains(folder: Path) -> None:
    one, two = segment(folder, 0), segment(folder, 1)
    one.rename(folder / "kept")
    two.rename(one)
    (folder / "kept").rename(two)
    assert {problem.chain for problem in verify(folder).problems} == {
        chain.name for chain in places.chains(folder)
    }


def test_a_chain_under_another_name(folder: Path) -> None:
    first = places.chains(folder)[0]
    shutil.copytree(first, folder / "20200101-abcdefgh")
    (folder / "20200101-bbbbbbbb").symlink_to(first)
    found = {problem.chain for problem in verify(folder).problems}
    assert found == {"20200101-abcdefgh", "20200101-bbbbbbbb"}


def test_the_file_of_a_running_process_that_is_cut_off(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    for number in range(10):
        chain.append("decision", {"what": number})
    path = places.segments(tmp_path / chain.id)[0]
    lines = path.read_bytes().splitlines(keepends=True)
    os.truncate(path, sum(map(len, lines[:5])))
    chain.append("decision", {"what": "after"})
    assert not verify(tmp_path).consistent
    chain.close()
    assert not verify(tmp_path).consistent


def test_a_killed_process_s_chain_can_be_cut_at_any_head_without_an_anchor(tmp_path: Path) -> None:
    heads: list[bytes] = []
    chain = Chain(tmp_path, heads.append)
    for _ in range(4):
        chain.append("decision", {})
        chain.sign()
    chain._close_files()
    path = next(tmp_path.glob("*/*.ndjson"))
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    alone = verify(tmp_path)
    assert alone.consistent and "cut off after record 3" in alone.notes[-1]
    assert not verify(tmp_path, heads).consistent


def test_lines_of_the_index_that_are_there_twice(folder: Path) -> None:
    path = folder / places.INDEX
    lines = path.read_bytes().splitlines(keepends=True)
    for place in range(len(lines)):
        path.write_bytes(b"".join([*lines[: place + 1], lines[place], *lines[place + 1 :]]))
        assert not verify(folder).consistent, lines[place]


def test_what_is_printed_of_a_changed_record_does_not_reach_the_terminal_as_it_is(folder: Path) -> None:
    path = segment(folder)
    path.write_bytes(path.read_bytes().replace(b'"at":"2', b'"at":"\\u001b[2J2', 1))
    first = segment(folder, 0, 0)
    first.write_bytes(first.read_bytes().replace(b'"chain":"', b'"chain":"\\u001b]0;x\\u0007', 1))
    done = CliRunner().invoke(root, ["audit", "verify"])
    assert done.exit_code == 1
    assert "\x1b" not in done.output and "\x07" not in done.output


def test_evidence_that_may_only_be_read(folder: Path) -> None:
    """Another person's folder has no key, and a lock that is not theirs."""
    (folder / "key").unlink()
    for chain in places.chains(folder):
        (chain / places.LOCK).unlink()
        (chain / places.LOCK).mkdir()
    assert verify(folder).consistent


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["configuration.lock", "index.lock"])
def test_a_lock_that_another_program_holds_delays_no_end(home: Path, name: str) -> None:
    log = AuditLog(home / "audit", AuditConfig())
    log.watch([home / "config.toml"])
    (home / "audit").mkdir()
    with (home / "audit" / name).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if name == "index.lock":
            with pytest.raises(AuditError, match="another process holds a lock"):
                log.record("login", {})
        else:
            log.record("login", {})
        log.close()
    report = verify(home / "audit")
    assert report.consistent and sum(chain.signed for chain in report.chains) == (name != "index.lock") * 3
