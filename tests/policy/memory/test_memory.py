"""Remembered answers: where they hold, until when, what a person may wish, and the file that they are in."""

from __future__ import annotations

import json
import os
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dragoman.atomic_file import locked
from dragoman.policy.act import Act
from dragoman.policy.load import act_of_command
from dragoman.policy.memory import file as memory_file
from dragoman.policy.memory.file import Remembered
from dragoman.policy.memory.memory import Memory, Scope, end_from, memory_of, read_wish
from dragoman.policy.memory.pattern import NotRemembered, Pattern

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.at = NOW

    def __call__(self) -> datetime:
        return self.at


def act(line: str = "make test", session: str = "s1", root: str = "/nowhere/p") -> Act:
    made = act_of_command(line, cwd=root, workspace=root)
    return Act(session=session, workspace=root, kind="execute", commands=made.commands)


def memory(scope: Scope = "project", until: str | None = None, now: datetime = NOW) -> Memory:
    pattern = [Pattern(command=[["make", "test"]], exact=True)]
    return memory_of(act(), pattern, scope, until, call="c1", who="local", now=now)


@pytest.mark.parametrize(
    ("scope", "holds"),
    [
        ("session", {("s1", "/nowhere/p")}),
        ("project", {("s1", "/nowhere/p"), ("s2", "/nowhere/p")}),
        ("everywhere", {("s1", "/nowhere/p"), ("s2", "/nowhere/p"), ("s2", "/nowhere/q")}),
    ],
)
def test_a_memory_holds_in_its_scope(scope: Scope, holds: set[tuple[str, str]]) -> None:
    kept = Remembered(None, Clock())
    kept.add(memory(scope))
    places = [("s1", "/nowhere/p"), ("s2", "/nowhere/p"), ("s2", "/nowhere/q")]
    assert {place for place in places if kept.rules(act("make test", *place))} == holds


def test_a_time_ends_and_a_clock_that_is_set_back_does_not_prolong_it() -> None:
    clock = Clock()
    kept = Remembered(None, clock)
    kept.add(memory("project", "1h"))
    clock.at = NOW + timedelta(minutes=59)
    assert kept.rules(act())
    clock.at = NOW + timedelta(minutes=61)
    assert not kept.rules(act()) and not kept.all()
    clock.at = NOW + timedelta(minutes=5)
    assert not kept.rules(act())


def test_a_time_that_began_in_the_future_is_not_in_force() -> None:
    clock = Clock()
    kept = Remembered(None, clock)
    kept.add(memory("project", "1h", NOW + timedelta(days=2)))
    assert not kept.rules(act())


@pytest.mark.parametrize(
    ("text", "end"),
    [("1h", NOW + timedelta(hours=1)), ("30m", NOW + timedelta(minutes=30)), ("2d", NOW + timedelta(days=2))],
)
def test_times(text: str, end: datetime) -> None:
    assert end_from(text, NOW) == end


def test_today_is_the_day_of_this_machine() -> None:
    end = end_from("today", NOW)
    assert end.date() == NOW.astimezone().date() and (end.hour, end.minute) == (23, 59)


@pytest.mark.parametrize("text", ["", "soon", "0h", "9999d", "2020-01-01", "-1h", "1h "])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(NotRemembered):
        end_from(text, NOW)


@pytest.mark.parametrize(
    "told",
    [
        None,
        [],
        "project",
        {},
        {"scope": "world"},
        {"scope": "project", "more": 1},
        {"scope": "project", "until": 5},
        {"scope": "project", "pattern": []},
        {"scope": "project", "pattern": [{"decision": "allow", "command": [["ls"]]}]},
        {"scope": "project", "pattern": [{"command": "ls"}]},
        {"scope": "project", "pattern": [{"command": [["ls"]]}] * 21},
        {"scope": "project", "pattern": [{"command": [["x" * 20_000]]}]},
    ],
)
def test_a_wish_of_another_shape_is_refused(told: object) -> None:
    with pytest.raises(NotRemembered):
        read_wish(told)


@pytest.mark.parametrize(
    "pattern", [{}, {"kind": ["execute"]}, "", "run", "run *", "rm x", "run 'x", "use", "write ''"]
)
def test_a_pattern_about_nothing_is_refused(pattern: object) -> None:
    with pytest.raises(NotRemembered):
        read_wish({"scope": "project", "pattern": [pattern]}).patterns([], "/nowhere/p")


def test_another_process_sees_it_at_its_next_decision(tmp_path: Path) -> None:
    path = tmp_path / "state" / "remembered.json"
    mine, other = Remembered(path), Remembered(path)
    assert not other.rules(act())
    kept = memory()
    mine.add(kept)
    assert path.stat().st_mode & 0o777 == 0o600
    assert other.rules(act())
    assert other.all() == [kept]
    assert other.forget(kept.id) == kept
    assert not mine.rules(act())
    assert mine.forget(kept.id) is None


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "remembered.json"

    def work() -> None:
        own = Remembered(path)
        for _ in range(10):
            own.add(memory())

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(Remembered(path).all()) == 50


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"version": 2}',
        '{"version": 1, "memories": [{"id": "x"}]}',
        '{"memories": 1}',
        "\x00" * 99,
    ],
)
def test_a_broken_file_is_as_good_as_empty_and_not_written_over(content: str, tmp_path: Path) -> None:
    path = tmp_path / "remembered.json"
    path.write_text(content)
    path.chmod(0o600)
    kept = Remembered(path)
    assert not kept.rules(act())
    with pytest.raises(NotRemembered, match=r"remembered\.json.*mend or delete"):
        kept.add(memory())
    assert path.read_text() == content


def test_a_file_that_others_may_write_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "remembered.json"
    Remembered(path).add(memory())
    path.chmod(0o666)
    kept = Remembered(path)
    assert not kept.rules(act())
    assert kept.broken is not None and "chmod 600" in kept.broken


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with pytest.raises(NotRemembered, match="cannot be written"):
        Remembered(tmp_path / "state" / "remembered.json").add(memory())


def test_a_lock_that_is_not_released_is_waited_for_with_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_file, "LOCK_SECONDS", 0.01)
    path = tmp_path / "remembered.json"
    with locked(path.with_suffix(".lock"), 1), pytest.raises(NotRemembered):
        Remembered(path).add(memory())


def test_there_is_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_file, "MAX_MEMORIES", 2)
    kept = Remembered(None, Clock())
    first = memory("session")
    for one in (first, memory("project"), memory("project")):
        kept.add(one)
    assert first not in kept.all() and len(kept.all()) == 2
    with pytest.raises(NotRemembered, match="forget some"):
        kept.add(memory("project"))


def test_a_deleted_session_takes_its_own_with_it(tmp_path: Path) -> None:
    kept = Remembered(tmp_path / "remembered.json")
    project = memory("project")
    for one in (memory("session"), project):
        kept.add(one)
    kept.forget_session("s1")
    assert kept.all() == [project]


def test_facts_are_those_of_the_documentation(tmp_path: Path) -> None:
    path = tmp_path / "remembered.json"
    Remembered(path).add(memory("project", "1h"))
    stored: dict[str, Any] = json.loads(path.read_text())["memories"][0]
    assert stored["pattern"] == [{"command": [["make", "test"]], "exact": True}]
    assert {name: stored[name] for name in ("scope", "root", "session", "call", "who", "decision")} == {
        "scope": "project",
        "root": "/nowhere/p",
        "session": "s1",
        "call": "c1",
        "who": "local",
        "decision": "allow",
    }
    assert os.listdir(tmp_path) and memory().facts()["words"] == "`make test`"
