"""Finding records."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from dragoman.audit import folder as places
from dragoman.audit import record, seek
from dragoman.audit.chain import Chain, end_dead_chains
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


def test_places_are_stored_by_who_writes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of full segments; the end of a chain is small here and needs none."""
    stored = sorted(path.with_suffix(".ndjson") for path in folder.glob("*/*.seek"))
    full = [path for chain in places.chains(folder) for path in places.segments(chain)[:-1]]
    assert stored == sorted(full) and len(full) > 4
    monkeypatch.setattr(seek, "make_seek", None)
    assert sorted(numbers(list(query(folder, Query(session="dgm_3"))))) == list(range(3, 100, 5))


@pytest.mark.parametrize("session", ['a":[0],"b', "\\", '"', "é", "dgm_1", "sessions"])
def test_places_of_names_that_look_like_json(
    session: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ['a":[0],"b', "\\", '"', "é", "dgm_1", "dgm_11", "a", "b", "sessions", ',"sessions":{']
    monkeypatch.setattr("dragoman.audit.chain.SEGMENT_BYTES", 1000)
    monkeypatch.setattr("dragoman.audit.chain.MOST_SESSIONS", 3)
    chain = Chain(tmp_path)
    for number in range(50):
        chain.append("decision", {"session": names[number % len(names)], "what": number})
    chain.close()
    wanted = [number for number in range(50) if names[number % len(names)] == session]
    assert numbers(list(query(tmp_path, Query(session=session)))) == wanted


def test_an_old_place_is_not_used(folder: Path) -> None:
    wanted = numbers(list(query(folder, Query(session="dgm_3"))))
    for path in folder.glob("*/*.seek"):
        path.write_bytes(b'{"size":1,"first":"","last":"","sessions":{}}')
    assert numbers(list(query(folder, Query(session="dgm_3")))) == wanted
    for path in folder.glob("*/*.seek"):
        path.write_bytes(b"not this")
    assert numbers(list(query(folder, Query(session="dgm_3")))) == wanted


def test_a_chain_without_the_session_is_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for session in ("dgm_a", "dgm_b", None):
        chain = Chain(tmp_path)
        chain.append("decision", {"session": session} if session else {})
        chain.close()
    looked: list[str] = []
    segments = places.segments

    def look(chain: Path) -> list[Path]:
        looked.append(chain.name)
        return segments(chain)

    monkeypatch.setattr(places, "segments", look)
    assert [each["session"] for each in query(tmp_path, Query(session="dgm_b"))] == ["dgm_b"]
    assert len(looked) == 1


def test_the_chain_of_a_killed_process_is_found_by_its_sessions_too(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    chain.append("decision", {"session": "dgm_a"})
    chain._close_files()
    assert len(end_dead_chains(tmp_path)) == 1
    (ended,) = (record.read_record(line) for line in places.read_index(tmp_path)[0] if b'"ended"' in line)
    assert ended["sessions"] == ["dgm_a"]
    assert len(list(query(tmp_path, Query(session="dgm_a")))) == 1


def test_a_chain_of_many_sessions_is_always_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.audit.chain.MOST_SESSIONS", 3)
    chain = Chain(tmp_path)
    for number in range(5):
        chain.append("decision", {"session": f"dgm_{number}"})
    chain.close()
    assert len(list(query(tmp_path, Query(session="dgm_0")))) == 1
