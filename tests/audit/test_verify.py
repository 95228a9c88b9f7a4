"""Each way to change the audit afterwards, with and without a copy of its heads elsewhere."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dragoman.audit import folder as places
from dragoman.audit import record
from dragoman.audit.chain import Chain, end_dead_chains
from dragoman.audit.keys import fingerprint, load_key, replace_key
from dragoman.audit.read import Query, query
from dragoman.audit.report import Report
from dragoman.audit.verify import verify
from dragoman.wire import timestamps


@dataclass
class Audit:
    """An audit of two chains, the second one not ended, with its heads kept elsewhere."""

    folder: Path
    anchor: list[bytes] = field(default_factory=list)
    first: str = ""
    second: str = ""

    def segment(self, chain: str, place: int = 0) -> Path:
        return places.segments(self.folder / chain)[place]

    def lines(self, chain: str) -> list[bytes]:
        return self.segment(chain).read_bytes().splitlines()

    def rewrite(self, chain: str, lines: list[bytes]) -> None:
        self.segment(chain).write_bytes(b"".join(line + b"\n" for line in lines))


@pytest.fixture
def audit(tmp_path: Path) -> Audit:
    made = Audit(tmp_path / "audit")
    one = Chain(made.folder, made.anchor.append)
    for number in range(10):
        one.append("decision", {"session": "dgm_a", "decision": "allow", "what": number})
        if number == 4:
            one.sign()
    made.first = one.id
    one.close()
    two = Chain(made.folder, made.anchor.append)
    for number in range(5):
        two.append("answer", {"session": "dgm_b", "what": number})
    two.sign()
    two.append("answer", {"session": "dgm_b", "what": "not signed yet"})
    made.second = two.id
    two._close_files()
    return made


def problems(report: Report) -> str:
    return "\n".join(f"{each.chain}:{each.record} {each.text}" for each in report.problems)


def test_an_untouched_audit_is_consistent(audit: Audit) -> None:
    report = verify(audit.folder)
    assert report.consistent, problems(report)
    assert report.anchored_up_to is None
    assert any("has no end" in note for note in report.notes)
    anchored = verify(audit.folder, audit.anchor)
    assert anchored.consistent, problems(anchored)
    last = json.loads(audit.lines(audit.second)[-1])["at"]
    assert anchored.anchored_up_to == last


def edited(audit: Audit) -> None:
    lines = audit.lines(audit.first)
    lines[3] = lines[3].replace(b'"allow"', b'"deny"')
    audit.rewrite(audit.first, lines)


def reordered(audit: Audit) -> None:
    lines = audit.lines(audit.first)
    lines[2], lines[3] = lines[3], lines[2]
    audit.rewrite(audit.first, lines)


def record_removed(audit: Audit) -> None:
    lines = audit.lines(audit.first)
    del lines[3]
    audit.rewrite(audit.first, lines)


def ended_chain_cut(audit: Audit) -> None:
    audit.rewrite(audit.first, audit.lines(audit.first)[:6])


def segment_removed(audit: Audit) -> None:
    audit.segment(audit.first).unlink()


def chain_removed(audit: Audit) -> None:
    shutil.rmtree(audit.folder / audit.first)


def rehashed_without_the_key(audit: Audit) -> None:
    lines = audit.lines(audit.first)
    lines[3] = lines[3].replace(b'"allow"', b'"deny"')
    _rehash(lines)
    audit.rewrite(audit.first, lines)


def index_line_removed(audit: Audit) -> None:
    path = audit.folder / places.INDEX
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[1:]))


def index_cut(audit: Audit) -> None:
    path = audit.folder / places.INDEX
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:1]))


def record_added(audit: Audit) -> None:
    lines = audit.lines(audit.first)
    lines.append(record.make_line(len(lines) + 1, "2026-01-01", "decision", {}, record.digest(lines[-1])))
    audit.rewrite(audit.first, lines)


def half_a_record(audit: Audit) -> None:
    audit.segment(audit.first).write_bytes(b"\n".join(audit.lines(audit.first)[:5])[:-10])


def _add_to_index(audit: Audit, kind: str, **facts: object) -> None:
    path = audit.folder / places.INDEX
    lines = path.read_bytes().splitlines()
    lines.append(record.make_line(len(lines) + 1, timestamps.now(), kind, facts, record.digest(lines[-1])))
    path.write_bytes(b"".join(line + b"\n" for line in lines))


def said_to_be_pruned(audit: Audit) -> None:
    """Whoever may write to the folder says that the configuration removed records."""
    gone, kept = audit.lines(audit.first)[:9], audit.lines(audit.first)[9:]
    told = {"chain": audit.first, "upTo": 9, "hash": record.digest(gone[-1])}
    _add_to_index(audit, "pruned", **told, before="2099-01-01T00:00:00.000Z")
    audit.segment(audit.first).unlink()
    (audit.folder / audit.first / places.segment_name(10)).write_bytes(
        b"".join(line + b"\n" for line in kept)
    )


def ended_once_more(audit: Audit) -> None:
    """The chain was signed at record 7."""
    lines = audit.lines(audit.first)[:7]
    audit.rewrite(audit.first, lines)
    _add_to_index(audit, "ended", chain=audit.first, last=7, hash=record.digest(lines[-1]))


def begun_once_more(audit: Audit) -> None:
    _add_to_index(audit, "begun", chain=audit.first)


def ended_with_a_wrong_signature(audit: Audit) -> None:
    path = audit.folder / places.INDEX
    *lines, last = path.read_bytes().splitlines()
    end_dead_chains(audit.folder)
    _, *added = path.read_bytes().splitlines()[len(lines) :]
    changed = added[0].replace(b'"killed":true', b'"killed":null')
    assert changed != added[0]
    path.write_bytes(b"".join(line + b"\n" for line in [*lines, last, changed]))


def first_record_replaced(audit: Audit) -> None:
    lines = audit.lines(audit.second)
    lines[0] = lines[0].replace(b'"kind":"chain"', b'"kind":"answer"')
    _rehash(lines, load_key(audit.folder).sign)
    audit.rewrite(audit.second, lines)


def named_as_another_chain(audit: Audit) -> None:
    lines = [line.replace(audit.second.encode(), b"20200101-aaaaaaaa") for line in audit.lines(audit.second)]
    _rehash(lines, load_key(audit.folder).sign)
    audit.rewrite(audit.second, lines)


ATTACKS: list[Callable[[Audit], None]] = [
    edited,
    reordered,
    record_removed,
    ended_chain_cut,
    segment_removed,
    chain_removed,
    rehashed_without_the_key,
    index_line_removed,
    index_cut,
    record_added,
    half_a_record,
    said_to_be_pruned,
    ended_once_more,
    begun_once_more,
    first_record_replaced,
    named_as_another_chain,
    ended_with_a_wrong_signature,
]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
@pytest.mark.parametrize("with_anchor", [False, True], ids=["alone", "anchored"])
def test_what_the_chains_themselves_show(
    audit: Audit, attack: Callable[[Audit], None], with_anchor: bool
) -> None:
    attack(audit)
    report = verify(audit.folder, audit.anchor if with_anchor else ())
    assert not report.consistent
    assert report.anchored_up_to is None


def end_cut_after_a_head(audit: Audit) -> None:
    """The unsigned end of a chain that has no end yet: a killed process looks the same."""
    audit.rewrite(audit.second, audit.lines(audit.second)[:-2])


def old_folder_put_back(audit: Audit) -> None:
    shutil.rmtree(audit.folder / audit.second)
    audit.rewrite(audit.first, audit.lines(audit.first)[:7])
    path = audit.folder / places.INDEX
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])


def rewritten_with_the_key(audit: Audit) -> None:
    lines = audit.lines(audit.second)
    lines[2] = lines[2].replace(b'"what":1', b'"what":9')
    _rehash(lines, load_key(audit.folder).sign)
    audit.rewrite(audit.second, lines)


def rewritten_with_another_key(audit: Audit) -> None:
    old = (audit.folder / "key.pub").read_text().strip()
    key = replace_key(audit.folder)
    (audit.folder / f"old-{fingerprint(old)}.pub").unlink()
    for chain in (audit.first, audit.second):
        lines = [
            line.replace(fingerprint(old).encode(), fingerprint(key.public).encode())
            for line in audit.lines(chain)
        ]
        _rehash(lines, key.sign)
        audit.rewrite(chain, lines)
    _write_index_anew(audit)


BEYOND: list[Callable[[Audit], None]] = [
    end_cut_after_a_head,
    old_folder_put_back,
    rewritten_with_the_key,
    rewritten_with_another_key,
]


@pytest.mark.parametrize("attack", BEYOND, ids=lambda attack: attack.__name__)
def test_what_only_an_anchor_shows(audit: Audit, attack: Callable[[Audit], None]) -> None:
    """Who has the key can make the folder consistent again; the report never says more than is proved."""
    attack(audit)
    alone = verify(audit.folder)
    assert alone.consistent, problems(alone)
    assert alone.anchored_up_to is None
    assert not verify(audit.folder, audit.anchor).consistent


def test_a_fingerprint_that_was_written_down_shows_another_key(audit: Audit) -> None:
    trusted = fingerprint(load_key(audit.folder).public)
    assert verify(audit.folder, trusted=[trusted]).consistent
    rewritten_with_another_key(audit)
    assert "another key" in problems(verify(audit.folder, trusted=[trusted]))


def test_a_head_of_another_key_is_not_said_to_be_gone(audit: Audit) -> None:
    found = problems(verify(audit.folder, audit.anchor, trusted=["0" * 32]))
    assert "another key" in found and "gone" not in found


def test_the_end_of_a_killed_process_is_fixed_by_the_next_one(audit: Audit) -> None:
    assert end_dead_chains(audit.folder) == [audit.second]
    assert end_dead_chains(audit.folder) == []
    assert verify(audit.folder).consistent
    audit.rewrite(audit.second, audit.lines(audit.second)[:-1])
    assert "its end was cut off" in problems(verify(audit.folder))


def _rehash(lines: list[bytes], sign: Callable[[bytes], bytes] | None = None) -> None:
    """Make the hashes right again, and with the key the signatures too."""
    previous = record.BEGINNING
    for place, line in enumerate(lines):
        made = record.split_signature(line)
        body = made[0] if made is not None else line
        facts = record.read_record(body)
        facts["prev"] = previous
        body = json.dumps(facts, separators=(",", ":"), ensure_ascii=False).encode()
        if made is not None:
            body = record.signed(body, sign(body) if sign is not None else made[1])
        lines[place] = body
        previous = record.digest(body)


def _write_index_anew(audit: Audit) -> None:
    """Make index and chains agree again: the first chain names the index's first line, the index its end."""
    path = audit.folder / places.INDEX
    lines = path.read_bytes().splitlines()
    _name_index(audit, audit.first, lines)
    end = places.end_of_chain(audit.folder / audit.first)
    assert end is not None
    key = load_key(audit.folder)
    facts = record.read_record(lines[1]) | {"hash": end.hash, "key": fingerprint(key.public)}
    lines[1] = json.dumps(facts, separators=(",", ":")).encode()
    _rehash(lines, key.sign)
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    _name_index(audit, audit.second, lines)


def _name_index(audit: Audit, chain: str, index: list[bytes]) -> None:
    found = audit.lines(chain)
    for place, line in enumerate(found):
        made = record.split_signature(line)
        told = record.read_record(made[0] if made is not None else line)
        if "index" in told:
            number = told["index"][0]
            told["index"][1] = record.digest(index[number - 1]) if number else record.BEGINNING
            body = json.dumps(told, separators=(",", ":")).encode()
            found[place] = body if made is None else record.signed(body, made[1])
    _rehash(found, load_key(audit.folder).sign)
    audit.rewrite(chain, found)


def test_an_end_that_was_told_meanwhile_is_not_told_again(
    audit: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes look after a killed one's chain at the same time."""
    read, others = places.read_index, [end_dead_chains]

    def overtaken(folder: Path, offset: int = 0) -> tuple[list[bytes], int]:
        found = read(folder, offset)
        if others:
            assert others.pop()(folder) == [audit.second]
        return found

    monkeypatch.setattr(places, "read_index", overtaken)
    assert end_dead_chains(audit.folder) == []
    monkeypatch.undo()
    assert verify(audit.folder).consistent


def test_places_that_hide_a_record_are_corrected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.audit.chain.SEGMENT_BYTES", 1000)
    monkeypatch.setattr("dragoman.audit.seek.WORTH", 1000)
    chain = Chain(tmp_path)
    for number in range(20):
        chain.append("decision", {"session": f"dgm_{number % 2}"})
    chain.close()
    path = sorted(tmp_path.glob("*/*.seek"))[0]
    honest = path.read_bytes()
    facts = json.loads(honest)
    del facts["sessions"]["dgm_1"]
    path.write_bytes(json.dumps(facts, separators=(",", ":")).encode())
    assert len(list(query(tmp_path, Query(session="dgm_1")))) < 10
    report = verify(tmp_path)
    assert report.consistent and "were wrong" in report.notes[0]
    assert path.read_bytes() == honest
    assert len(list(query(tmp_path, Query(session="dgm_1")))) == 10
    assert verify(tmp_path).notes == []
