"""Records that `audit.retain_days` removes, and those of which the key's holder only says so."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dragoman.audit import folder as places
from dragoman.audit import record
from dragoman.audit.chain import Chain
from dragoman.audit.keys import KeyProblem, load_key
from dragoman.audit.prune import DAY, prune
from dragoman.audit.report import Report
from dragoman.audit.verify import verify
from dragoman.wire import timestamps
from dragoman.wire.timestamps import milliseconds, timestamp

START = milliseconds("2026-03-01T00:00:00.000Z")


@dataclass
class Audit:
    """An audit in which a day passes when it is told."""

    folder: Path
    heads: list[bytes] = field(default_factory=list)
    day: float = 0

    @property
    def now(self) -> int:
        return START + int(self.day * DAY)

    def write(self, day: float, retain_days: int, *, open: bool = False) -> Chain:
        self.day = day
        chain = Chain(self.folder, self.heads.append, retain_days=retain_days)
        for number in range(50):
            chain.append("decision", {"what": number})
            if number % 10 == 0:
                chain.sign()
        if not open:
            chain.close()
        return chain

    def check(self, *, anchored: bool) -> Report:
        return verify(self.folder, self.heads if anchored else (), now=self.now)

    def say_removed(self, at: float, before: float) -> None:
        """Who has the key removes the first segments of the first chain, and says that it is of age."""
        chain = places.chains(self.folder)[0]
        *gone, _ = places.segments(chain)
        end = places.end_of_file(gone[-1])
        assert end is not None
        told: dict[str, Any] = {"chain": chain.name, "upTo": end.n, "hash": end.hash}
        kept, self.day = self.day, at
        limit = timestamp(START + int(before * DAY))
        places.add_to_index(self.folder, "pruned", key=load_key(self.folder), **told, before=limit)
        self.day = kept
        for path in gone:
            path.unlink()


@pytest.fixture
def audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Audit:
    made = Audit(tmp_path / "audit")
    monkeypatch.setattr("dragoman.audit.chain.SEGMENT_BYTES", 1000)
    monkeypatch.setattr(timestamps, "now", lambda: timestamp(made.now))
    return made


def problems(report: Report) -> str:
    return "\n".join(f"{each.chain}:{each.record} {each.text}" for each in report.problems)


def removals(report: Report) -> list[str]:
    return [note for note in report.notes if "were removed at" in note]


@pytest.mark.parametrize("anchored", [False, True], ids=["alone", "anchored"])
def test_pruning_leaves_the_proof_of_what_remains(audit: Audit, anchored: bool) -> None:
    chain = audit.write(0, 30, open=True)
    folder = audit.folder / chain.id
    before = len(places.segments(folder))
    assert before > 5
    audit.day = 31
    assert prune(audit.folder, audit.now - 30 * DAY) == before - 1
    assert len(places.segments(folder)) == 1
    report = audit.check(anchored=anchored)
    assert report.consistent, problems(report)
    (note,) = removals(report)
    assert (
        "heads kept elsewhere show that they were that old" if anchored else "nothing kept elsewhere"
    ) in note
    assert [removed["shown"] for removed in report.removed] == [anchored]
    chain.append("decision", {})
    chain.close()
    assert audit.check(anchored=anchored).consistent
    audit.day = 62
    assert prune(audit.folder, audit.now - 30 * DAY) == 1
    report = audit.check(anchored=anchored)
    assert report.consistent, problems(report)
    assert not folder.exists()
    assert len(removals(report)) == 2 and folder.name in removals(report)[0]


@pytest.mark.parametrize("anchored", [False, True], ids=["alone", "anchored"])
@pytest.mark.parametrize(
    ("at", "before", "why"),
    [
        (5, 4.5, "no setting removes records of the last day"),
        (5, 90, "no setting removes records of the last day"),
        (40, 10, "a time that has not come yet"),
    ],
    ids=["today's", "those to come", "in the future"],
)
def test_an_age_that_no_setting_has_is_found_by_itself(
    audit: Audit, at: float, before: float, why: str, anchored: bool
) -> None:
    audit.write(0, 30)
    audit.day = 5
    audit.say_removed(at, before)
    assert why in problems(audit.check(anchored=anchored))


@pytest.mark.parametrize(
    ("retain_days", "why"),
    [(30, "audit.retain_days = 30 still kept it"), (0, "audit.retain_days kept all records")],
)
def test_a_false_age_is_found_with_an_anchor_alone(audit: Audit, retain_days: int, why: str) -> None:
    audit.write(0, retain_days)
    audit.day = 5
    audit.say_removed(5, 3)
    alone = audit.check(anchored=False)
    assert alone.consistent and "who has the key could have removed them earlier" in removals(alone)[0]
    assert why in problems(audit.check(anchored=True))


def test_a_head_that_was_still_to_be_kept_shows_what_was_removed_too_early(audit: Audit) -> None:
    """The key's holder says that only what is older was removed."""
    audit.write(0, 30)
    audit.day = 40
    audit.say_removed(40, -1)
    assert audit.check(anchored=False).consistent
    assert "it was still to be kept" in problems(audit.check(anchored=True))


def test_a_setting_that_was_shortened_meanwhile(audit: Audit) -> None:
    audit.write(0, 30)
    audit.write(4, 2)
    audit.day = 5
    assert prune(audit.folder, audit.now - 2 * DAY) > 5
    report = audit.check(anchored=True)
    assert report.consistent, problems(report)
    assert report.anchored_up_to is not None


def test_heads_of_a_version_without_the_setting(audit: Audit) -> None:
    audit.write(0, 30)
    audit.day = 5
    audit.say_removed(5, 3)
    made = [record.split_signature(line) for line in audit.heads]
    audit.heads = [one[0].replace(b'"retainDays":30,', b"") for one in made if one is not None]
    found = problems(audit.check(anchored=True))
    assert "retain_days" not in found and "kept elsewhere" in found


def test_nothing_is_removed_that_cannot_be_signed(audit: Audit) -> None:
    audit.write(0, 30)
    (audit.folder / "key").unlink()
    audit.day = 90
    with pytest.raises(KeyProblem):
        prune(audit.folder, audit.now - 30 * DAY)
    assert audit.check(anchored=True).consistent
