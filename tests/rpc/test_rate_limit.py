"""How often a peer may do something."""

from __future__ import annotations

from dragoman.rpc.rate_limit import RateLimit


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_so_many_within_so_many_seconds_and_then_anew() -> None:
    clock = Clock()
    rate = RateLimit(2, 10.0, clock)
    assert [rate.take() for _ in range(3)] == [True, True, False]
    clock.now += 9.0
    assert not rate.take()
    assert rate.wait == 1.0
    clock.now += 1.0
    assert rate.wait == 0.0
    assert [rate.take() for _ in range(3)] == [True, True, False]


def test_what_is_earned_comes_on_top_and_has_a_bound() -> None:
    rate = RateLimit(2, 10.0, Clock())
    rate.earn(3)
    assert [rate.take() for _ in range(6)] == [True] * 5 + [False]
    rate.earn(1000)
    assert sum(rate.take() for _ in range(1000)) == 20
