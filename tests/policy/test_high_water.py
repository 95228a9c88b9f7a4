"""What allowed and ended does not hold again: a clock that is set back, a reload, another process."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dragoman.config.load import load
from dragoman.config.model import PolicyConfig
from dragoman.config.paths import Paths, find_paths
from dragoman.policy.high_water import FILE, HighWater, high_water
from dragoman.policy.load import act_of_command
from dragoman.policy.memory.file import Remembered
from dragoman.policy.memory.memory import memory_of
from dragoman.policy.memory.pattern import patterns_of
from dragoman.policy.rulebook import Rulebook

NOW = datetime(2126, 11, 18, 12, tzinfo=UTC)  # later than the clock of any file here
HOUR = timedelta(hours=1)
ALLOW = """
[[policy.rules]]
name = "for now"
decision = "allow"
command = [["cat"]]
expires = "2126-11-18T12:30+00:00"
"""


def restarted() -> None:
    """As in a process that begins."""
    high_water.cache_clear()


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    found = find_paths({"DRAGOMAN_HOME": str(tmp_path)})
    found.config_file.write_text(ALLOW)
    found.state_dir.mkdir(parents=True, exist_ok=True)
    return found


@pytest.fixture
def decided(paths: Paths, tmp_path: Path) -> Callable[[Rulebook, datetime], str]:
    act = act_of_command("cat a", cwd=str(tmp_path), workspace=str(tmp_path))

    def decide(book: Rulebook, now: datetime) -> str:
        policy = book.policy_for(str(tmp_path))
        policy.now = lambda: now
        return policy.decide(act).decision

    return decide


def rulebook(paths: Paths, moves: list[float]) -> Rulebook:
    return Rulebook(
        lambda workspace: load(paths, workspace=workspace, environ={}),
        PolicyConfig(),
        paths,
        paths.state_dir / "none.toml",
        clock=lambda: moves[0],
    )


def test_a_reload_does_not_bring_a_rule_back(
    paths: Paths, decided: Callable[[Rulebook, datetime], str]
) -> None:
    moves = [0.0]
    book = rulebook(paths, moves)
    assert decided(book, NOW) == "allow"
    assert decided(book, NOW + HOUR) == "ask"
    paths.config_file.write_text(ALLOW + "# changed\n")
    moves[0] = 10.0
    assert decided(book, NOW) == "ask"


def test_another_process_does_not_bring_a_rule_back(
    paths: Paths, decided: Callable[[Rulebook, datetime], str], caplog: pytest.LogCaptureFixture
) -> None:
    assert decided(rulebook(paths, [0.0]), NOW + HOUR) == "ask"
    restarted()
    assert decided(rulebook(paths, [0.0]), NOW) == "ask"
    assert "the clock was set back" in caplog.text and FILE in caplog.text
    (paths.state_dir / FILE).unlink()
    restarted()
    assert decided(rulebook(paths, [0.0]), NOW) == "allow"


def test_another_process_does_not_bring_an_answer_back(tmp_path: Path) -> None:
    path, act = tmp_path / "remembered.json", act_of_command("make x", cwd="/p", workspace="/p")
    patterns = patterns_of(act)
    assert patterns is not None
    kept = Remembered(path, lambda: NOW)
    kept.add(memory_of(act, patterns, "project", "30m", call="c", who="me", now=NOW))
    assert len(kept.rules(act)) == 1
    assert Remembered(path, lambda: NOW + HOUR).rules(act) == []
    restarted()
    assert Remembered(path, lambda: NOW + timedelta(minutes=5)).rules(act) == []


def test_a_mark_that_is_too_far_ahead_is_not_believed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mark = tmp_path / FILE
    mark.touch()
    at = (NOW + timedelta(days=3000)).timestamp()
    os.utime(mark, (at, at))
    assert HighWater(mark).advance(NOW) == NOW
    assert "too far ahead" in caplog.text


def test_a_mark_that_cannot_be_stored_holds_in_this_process(tmp_path: Path) -> None:
    mark = HighWater(tmp_path / "nowhere" / FILE)
    assert mark.advance(NOW + HOUR) == NOW + HOUR == mark.advance(NOW)


def test_the_mark_is_moved_once_a_minute_at_most_and_never_back(tmp_path: Path) -> None:
    path = tmp_path / FILE
    mark = HighWater(path)
    mark.advance(NOW)
    for second in range(59):
        mark.advance(NOW + timedelta(seconds=second))
    assert path.stat().st_mtime == NOW.timestamp()
    mark.advance(NOW + HOUR)
    HighWater(path).advance(NOW)
    assert path.stat().st_mtime == (NOW + HOUR).timestamp()
