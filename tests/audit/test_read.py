"""Finding records."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from dragoman.audit.chain import Chain
from dragoman.audit.read import Query, forget_places, latest, query, show


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two chains, written in turn, of several segments each."""
    monkeypatch.setattr("dragoman.audit.chain.SEGMENT_BYTES", 2000)
    chains = [Chain(tmp_path), Chain(tmp_path)]
    for number in range(100):
        chains[number % 2].append(
            "decision",
            {
                "session": f"dgm_{number % 5}",
                "decision": "deny" if number % 7 == 0 else "allow",
                "what": number,
            },
        )
        if number % 10 == 9:
            until = time.time_ns() // 1_000_000
            while time.time_ns() // 1_000_000 == until:
                pass
    for chain in chains:
        chain.close()
    return tmp_path


def numbers(found: list[dict[str, Any]]) -> list[int]:
    return [each["what"] for each in found if "what" in each]


def test_records_of_all_chains_come_in_the_order_of_time(folder: Path) -> None:
    found = list(query(folder, Query(kind="decision")))
    assert sorted(numbers(found)) == list(range(100))
    assert [each["at"] for each in found] == sorted(each["at"] for each in found)


@pytest.mark.parametrize("again", [False, True], ids=["first", "with places remembered"])
def test_a_session_is_found_by_its_id(folder: Path, again: bool) -> None:
    if again:
        list(query(folder, Query(session="dgm_3")))
    found = list(query(folder, Query(session="dgm_3")))
    assert sorted(numbers(found)) == list(range(3, 100, 5))
    forget_places(folder)
    assert len(list(query(folder, Query(session="dgm_3", decision="deny")))) == 3


def test_since_and_until(folder: Path) -> None:
    every = list(query(folder, Query(kind="decision")))
    since = str(every[40]["at"])
    assert len(list(query(folder, Query(kind="decision", since=since)))) == sum(
        e["at"] >= since for e in every
    )
    assert len(list(query(folder, Query(kind="decision", until=since)))) == sum(
        e["at"] < since for e in every
    )


def test_the_latest(folder: Path) -> None:
    assert set(numbers(latest(folder, 10, Query(kind="decision")))) == set(range(90, 100))
    assert latest(folder, 3)[-1]["what"] in (98, 99)


def test_one_record_by_its_id(folder: Path) -> None:
    wanted = list(query(folder, Query(kind="decision")))[57]
    assert show(folder, str(wanted["id"])) == wanted
    assert show(folder, "20260101-aaaaaaaa:1") is None
    assert show(folder, "../../etc/passwd:1") is None
