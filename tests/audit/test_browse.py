"""Records page by page, and how many there are in each hour."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dragoman.audit.browse import page as pages
from dragoman.audit.browse.counts import Counts, Tally
from dragoman.audit.browse.page import BadPlace, Place, read_page, read_place
from dragoman.audit.chain import Chain
from dragoman.audit.read import Query, query
from dragoman.wire import timestamps

HOUR = 3_600_000
BEGINNING = 1_789_700_000_000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two chains of several segments over ten hours, written in turn; a third one is about tokens."""
    clock = iter(range(BEGINNING, BEGINNING + 10 * HOUR, 10 * HOUR // 600))
    monkeypatch.setattr(timestamps, "now", lambda: timestamps.timestamp(next(clock)))
    monkeypatch.setattr("dragoman.audit.chain.SEGMENT_BYTES", 4000)
    chains = [Chain(tmp_path), Chain(tmp_path), Chain(tmp_path)]
    for number in range(300):
        facts: dict[str, Any] = {
            "session": f"dgm_{number % 5}",
            "agent": "a" if number % 3 else "b",
            "tool": "shell" if number % 4 else 'a "quoted" tool',
            "decision": "deny" if number % 7 == 0 else "allow",
            "by": "tests",
            "call": f"c{number}",
        }
        chains[number % 2].append("decision", facts)
        if number % 50 == 0:
            chains[2].append("token_made", {"name": f"t{number}", "by": "local"})
            chains[0].append("unmediated", {"session": "dgm_0", "agent": "a", "call": f"u{number}"})
            chains[0].append(
                "tool_ended", {"session": "dgm_0", "agent": "a", "call": "v", "unmediated": True}
            )
            chains[1].append("answer", {"session": "dgm_0", "by": "user", "identity": "ann"})
    for chain in chains:
        chain.close()
    return tmp_path


QUERIES = [
    Query(),
    Query(decision="deny"),
    Query(agent="b"),
    Query(tool='a "quoted" tool'),
    Query(by="ann"),
    Query(session="dgm_3"),
    Query(unmediated=True),
    Query(of_sessions=True),
    Query(call="c77"),
    Query(kind="decision", since=timestamps.timestamp(BEGINNING + 2 * HOUR + 5)),
    Query(until=timestamps.timestamp(BEGINNING + 4 * HOUR)),
    Query(tool="no such tool"),
]


def paged(folder: Path, asked: Query, limit: int) -> list[str]:
    """The ids of all pages, the oldest record first."""
    found: list[str] = []
    before: Place | None = None
    for _ in range(1000):
        page = read_page(folder, asked, limit, before)
        found = [each["id"] for each in page.records] + found
        if page.following is None:
            return found
        before = read_place(str(page.following))
    raise AssertionError("the pages have no end")


@pytest.mark.parametrize("asked", QUERIES, ids=lambda asked: str(asked)[5:])
@pytest.mark.parametrize("patience", [1.0, 0.0], ids=["patient", "impatient"])
def test_each_record_is_on_exactly_one_page(
    folder: Path, asked: Query, patience: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages.read_page, "__defaults__", (None, patience))
    every = [each["id"] for each in query(folder, asked)]
    found = paged(folder, asked, 17)
    assert sorted(found) == sorted(every) and len(set(found)) == len(found)
    assert paged(folder, asked, 1000) == found


def test_the_first_page_has_the_latest(folder: Path) -> None:
    page = read_page(folder, Query(kind="decision"), 3)
    assert [each["call"] for each in page.records] == ["c297", "c298", "c299"]


def test_a_page_that_has_everything_is_the_last(folder: Path) -> None:
    assert read_page(folder, Query(kind="token_made"), 6).following is None
    assert read_page(folder / "nothing", Query(), 6).records == []


@pytest.mark.parametrize("text", ["", "x", "2026-11-18T03:31:02.123Z/../../1", "2026-11-18/~/0"])
def test_other_cursors_are_refused(text: str) -> None:
    with pytest.raises(BadPlace):
        read_place(text)


@pytest.mark.parametrize("asked", QUERIES, ids=lambda asked: str(asked)[5:])
def test_hours_are_counted(folder: Path, asked: Query) -> None:
    expected: dict[str, Counter[str]] = {}
    for each in query(folder, asked):
        counted = expected.setdefault(each["at"][:13], Counter())
        counted.update(
            records=1,
            denied=each.get("decision") == "deny",
            unmediated=each["kind"] == "unmediated" or "unmediated" in each,
        )
    counts = Counts()
    for _ in range(2):  # from the files, then as remembered
        found: dict[str, Tally] = {}
        steps = list(counts.count(folder, asked))
        for step in steps:
            for hour, tally in step.hours.items():
                total = found.setdefault(hour, Tally())
                total.records += tally.records
                total.denied += tally.denied
                total.unmediated += tally.unmediated
        shown = {hour: (one.records, one.denied, one.unmediated) for hour, one in found.items()}
        assert shown == {
            hour: (one["records"], one["denied"], one["unmediated"]) for hour, one in expected.items()
        }
        assert steps[-1].bytes == steps[-1].of


def test_a_segment_that_has_grown_is_counted_anew(tmp_path: Path) -> None:
    chain, counts = Chain(tmp_path), Counts()
    for number in range(1, 4):
        chain.append("decision", {"session": "s", "decision": "deny"})
        steps = list(counts.count(tmp_path, Query(decision="deny")))
        assert sum(tally.records for step in steps for tally in step.hours.values()) == number
    chain.close()
