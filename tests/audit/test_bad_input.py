"""Files, clocks, keys and places that are not as they should be."""

from __future__ import annotations

import json
import multiprocessing
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.audit import anchors, record
from dragoman.audit import folder as places
from dragoman.audit.chain import Chain, end_dead_chains
from dragoman.audit.errors import AuditError
from dragoman.audit.log import AuditLog
from dragoman.audit.read import Follower, Query, latest, query, show
from dragoman.audit.verify import verify
from dragoman.config.audit_model import AuditConfig
from dragoman.wire import timestamps
from support.gateway_process import Start
from support.session_client import notice
from support.store.small_disk import mounting

FULL = """
import sys
from pathlib import Path
from dragoman.audit.errors import AuditError
from dragoman.audit.log import AuditLog
from dragoman.audit.read import Query, query
from dragoman.audit.verify import verify
from dragoman.config.audit_model import AuditConfig

disk = Path(sys.argv[1])
log = AuditLog(disk / "audit", AuditConfig())
filler = (disk / "filler").open("wb", buffering=0)
log.record("decision", {"session": "dgm_a"})
try:
    while True:
        filler.write(b"x" * 4096)
except OSError:
    pass
written = failed = 0
while failed < 3:
    try:
        log.record("decision", {"session": "dgm_a", "what": "x" * 1000})
        written += 1
    except AuditError as error:
        assert "free some space" in str(error), error
        failed += 1
filler.truncate(0)
log.record("decision", {"session": "dgm_b"})
log.close()
(gap,) = query(disk / "audit", Query(kind="gap"))
assert gap["missing"] == 3
assert len(list(query(disk / "audit", Query(kind="decision")))) == written + 2
report = verify(disk / "audit")
assert report.consistent, report.problems
print("as it should be")
"""


def test_a_full_disk_leaves_no_half_record_and_it_goes_on_when_there_is_space(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    prefix = mounting(f"mount -t tmpfs -o size=1m,mode=700 tmpfs {disk}")
    command = [*prefix, sys.executable, "-c", FULL, str(disk)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "as it should be\n", done.stderr


async def test_nothing_is_done_that_cannot_be_recorded(dragoman: Start, workspace: Path, home: Path) -> None:
    (home / "audit").write_text("in the way")
    gateway = await dragoman(sessions={"write_patience": 1})
    await gateway.initialize()
    session = await gateway.new_session(workspace)

    def allow(params: dict[str, list[dict[str, str]]]) -> object:
        (once,) = (each["optionId"] for each in params["options"] if each["kind"] == "allow_once")
        return {"outcome": {"outcome": "selected", "optionId": once}}

    gateway.on("session/request_permission", allow)
    turn = await gateway.prompt(session, "permission")
    assert turn.report("permission")["result"]["outcome"]["optionId"] == "no"
    assert str(home / "audit") in await notice(gateway, session, "could not be recorded")
    (home / "audit").unlink()
    turn = await gateway.prompt(session, "permission")
    assert turn.report("permission")["result"]["outcome"]["optionId"] != "no"


@pytest.fixture
def torn(tmp_path: Path) -> Path:
    """The folder of a process that was killed in the middle of an append."""
    chain = Chain(tmp_path)
    for number in range(5):
        chain.append("decision", {"session": "dgm_a", "what": number})
    chain._close_files()
    (segment,) = tmp_path.glob("*/*.ndjson")
    with segment.open("ab") as file:
        file.write(b'{"n":7,"at":"2026-11-18T03:31:02.123Z","ki')
    with (tmp_path / places.INDEX).open("ab") as file:
        file.write(b'{"n":2,"at":"2026-')
    return tmp_path


def test_a_torn_last_line_is_not_a_record(torn: Path) -> None:
    assert len(list(query(torn, Query(session="dgm_a")))) == 5
    assert len(latest(torn, 100)) == 6
    report = verify(torn)
    assert report.consistent and any("a killed process began" in note for note in report.notes)
    assert len(end_dead_chains(torn)) == 1
    report = verify(torn)
    assert report.consistent and report.chains[0].killed and report.chains[0].last == 6


def test_one_chain_that_cannot_be_read_does_not_hold_up_the_others(torn: Path) -> None:
    other = Chain(torn)
    other.append("decision", {})
    id = other.id
    other._close_files()
    with places.segments(torn / id)[0].open("ab") as file:
        file.write(b"no record\n")
    assert id not in end_dead_chains(torn)
    assert not verify(torn).consistent
    assert len(list(query(torn, Query(kind="decision")))) == 6


def test_a_chain_of_a_newer_version_is_told_and_the_others_are_checked(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    chain.append("decision", {"session": "dgm_a"})
    id = chain.id
    chain.close()
    (segment,) = places.segments(tmp_path / id)
    first, *rest = segment.read_bytes().splitlines()
    facts = json.loads(first) | {"version": record.VERSION + 1}
    segment.write_bytes(b"\n".join([json.dumps(facts).encode(), *rest, b""]))
    old = Chain(tmp_path)
    old.append("decision", {"session": "dgm_b"})
    old.close()
    (problem,) = verify(tmp_path).problems
    assert problem.chain == id and "a newer version" in problem.text
    assert len(list(query(tmp_path, Query(kind="decision")))) == 2


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Times that records get, one after the other; the last one stays."""
    times = ["2026-11-18T03:31:02.123Z"]
    monkeypatch.setattr(timestamps, "now", lambda: times.pop(0) if len(times) > 1 else times[0])
    return times


def test_a_clock_that_goes_back_loses_nothing(
    tmp_path: Path, clock: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.audit.chain.SEGMENT_BYTES", 700)
    chain = Chain(tmp_path)
    chain.append("decision", {"session": "dgm_a", "what": 0})
    follower = Follower(tmp_path)
    for number, hour in enumerate((9, 10, 8, 7, 11), 1):
        clock[:] = [f"2026-11-18T{hour:02d}:00:00.000Z"]
        chain.append("decision", {"session": "dgm_a", "what": number})
    chain.sign()
    assert [each["what"] for each in follower.new() if "what" in each] == [1, 2, 3, 4, 5]
    assert follower.new() == []
    chain.close()
    wanted = {each["what"] for each in query(tmp_path, Query(session="dgm_a", since="2026-11-18T09:00"))}
    assert wanted == {1, 2, 5}
    assert {each["what"] for each in query(tmp_path, Query(session="dgm_a"))} == set(range(6))
    report = verify(tmp_path)
    assert report.consistent and any("the clock went back" in note for note in report.notes)


def test_new_records_of_chains_that_begin_and_end_meanwhile(tmp_path: Path) -> None:
    follower = Follower(tmp_path)
    for number in range(3):
        chain = Chain(tmp_path)
        chain.append("decision", {"what": number})
        chain.close()
    assert [each["what"] for each in follower.new() if each["kind"] == "decision"] == [0, 1, 2]
    assert follower.new() == [] and follower._open == {}


def _append(folder: Path, name: str, begin: int) -> None:
    log = AuditLog(folder, AuditConfig())
    for number in range(200):
        log.record("decision", {"session": name, "what": number})
        if number % 50 == begin:
            log.sign()
    log.close()


def test_several_processes_at_once(tmp_path: Path) -> None:
    """With the key, the index and its ends made by all of them at once."""
    context = multiprocessing.get_context("fork")
    running = [context.Process(target=_append, args=(tmp_path, f"dgm_{n}", n)) for n in range(6)]
    for process in running:
        process.start()
    for process in running:
        process.join(60)
        assert process.exitcode == 0
    report = verify(tmp_path)
    assert report.consistent and len(report.chains) == 6 and report.notes == []
    assert all(chain.ended and not chain.killed and chain.signed == chain.last for chain in report.chains)
    for number in range(6):
        found = list(query(tmp_path, Query(session=f"dgm_{number}")))
        assert [each["what"] for each in found] == list(range(200))
    assert len(list(tmp_path.glob("*.pub"))) == 1


def test_ten_thousand_records_of_several_threads(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, AuditConfig())

    def write(name: str) -> None:
        for number in range(2500):
            log.record("decision", {"session": name, "what": number})

    threads = [threading.Thread(target=write, args=(f"dgm_{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        log.sign()
    for thread in threads:
        thread.join()
    log.close()
    report = verify(tmp_path)
    assert report.consistent and report.records >= 10_002
    for number in range(4):
        found = list(query(tmp_path, Query(session=f"dgm_{number}")))
        assert [each["what"] for each in found] == list(range(2500))


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that accepts connections and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/heads"


def test_an_anchor_that_never_answers_holds_up_nothing_and_is_told(
    tmp_path: Path, silent: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(anchors, "TIMEOUT", 0.05)
    log = AuditLog(tmp_path, AuditConfig(anchors=[silent], anchor_records=True))
    for number in range(300):
        log.record("decision", {"what": number})
    log.sign()
    (anchor,) = log.anchors
    assert anchor.waiting == 302
    log.close()
    assert "audit anchor does not take heads; they are queued" in caplog.text
    assert "heads of the audit did not reach an anchor" in caplog.text
    assert verify(tmp_path).consistent
    assert len(list(query(tmp_path, Query(kind="decision")))) == 300


NONSENSE = {
    "bytes": b"\xff\xfe",
    "text that is not UTF-8": b'{"n":1,"at":"\xff","kind":"x","prev":""}',
    "an object without members": b"{}",
    "a list": b"[1]",
    "a number as kind": b'{"n":1,"at":"2026","kind":7,"prev":""}',
    "no number": b'{"n":"1","at":"2026","kind":"x","prev":""}',
    "depth": b"[" * 100_000,
    "other places": b'{"n":3,"at":"2026","kind":"chain","index":[-1,2],"version":"x","prev":""}',
    "a head": b'{"n":3,"at":"2026","kind":"head","index":7,"key":[],"prev":"","sig":"x"}',
}


@pytest.mark.parametrize("line", NONSENSE.values(), ids=NONSENSE)
def test_a_line_that_is_no_record_is_found_and_the_others_are_shown(torn: Path, line: bytes) -> None:
    (segment,) = torn.glob("*/*.ndjson")
    first, *rest = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(b"".join([first, line + b"\n", *rest]))
    assert len(list(query(torn, Query(session="dgm_a")))) == 5
    assert len([each for each in latest(torn, 100) if each.get("session")]) == 5
    assert show(torn, f"{segment.parent.name}:4") is not None
    assert not verify(torn).consistent
    assert not verify(torn, [line]).consistent
    with (torn / places.INDEX).open("ab") as file:
        file.write(b"\n" + line + b"\n")
    assert len(list(query(torn, Query(session="dgm_a")))) == 5
    assert not verify(torn).consistent
    Follower(torn).new()


def test_a_process_that_was_killed_when_it_began_is_not_an_attack(tmp_path: Path) -> None:
    """The first record is written before the index names the chain: what it names and is gone was removed."""
    (tmp_path / "20261118-aaaaaaaa").mkdir()
    chain = Chain(tmp_path)
    chain.append("decision", {})
    id = chain.id
    chain._close_files()
    (segment,) = places.segments(tmp_path / id)
    segment.write_bytes(segment.read_bytes().splitlines(keepends=True)[0])
    (tmp_path / places.INDEX).unlink()
    report = verify(tmp_path)
    assert report.consistent, report.problems
    assert sum("was killed when it began" in note for note in report.notes) == 2


def test_a_chain_that_cannot_begin_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / places.INDEX).mkdir()
    chain = Chain(tmp_path)
    for _ in range(3):
        with pytest.raises(AuditError):
            chain.append("decision", {})
    assert places.chains(tmp_path) == []
    (tmp_path / places.INDEX).rmdir()
    chain.append("decision", {})
    chain.close()
    assert verify(tmp_path).consistent
