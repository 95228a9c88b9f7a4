"""When commits wait for company."""

from dragoman.store.limits import CROWD_COMMITS, CROWD_PAUSE, CROWD_SESSIONS
from dragoman.store.pace import Pace


def waits(sessions: int, apart: float, commits: int = 10 * CROWD_COMMITS) -> list[float]:
    """How long each of many commits waits that would come so many seconds apart."""
    pace, now, taken = Pace(), 100.0, []
    for number in range(commits):
        wait = pace.wait(f"s{number % sessions}", now)
        taken.append(wait)
        now += wait + apart
    return taken


def test_one_session_never_waits_however_fast_it_is() -> None:
    assert not any(waits(sessions=1, apart=0.0001))


def test_a_few_sessions_never_wait() -> None:
    assert not any(waits(sessions=CROWD_SESSIONS - 1, apart=0.0001))


def test_a_crowd_that_says_little_never_waits() -> None:
    assert not any(waits(sessions=100, apart=2 * CROWD_PAUSE))


def test_a_crowd_shares_a_commit_a_millisecond() -> None:
    taken = waits(sessions=100, apart=CROWD_PAUSE / 10)
    assert not any(taken[:CROWD_COMMITS])
    assert all(0 < wait <= CROWD_PAUSE for wait in taken[CROWD_COMMITS:])


def test_a_crowd_that_falls_silent_is_forgotten() -> None:
    pace = Pace()
    for number in range(2 * CROWD_COMMITS):
        pace.wait(f"s{number}", 100.0)
    assert pace.wait("s0", 200.0) == 0
