"""What an agent says before its session is known is held within bounds, whatever it names."""

from __future__ import annotations

import pytest

from dragoman.gateway.delivery.early_messages import EarlyMessages
from dragoman.wire import limits


def test_messages_are_held_in_order_and_taken_once() -> None:
    early = EarlyMessages()
    assert all(early.hold(session, line) for session, line in (("a", b"1"), ("b", b"2"), ("a", b"3")))
    assert early.take("a") == [b"1", b"3"]
    assert early.take("a") == []
    assert early.hold("c", b"4")
    assert early.forget(except_for="b") == [b"4"]
    assert early.take("b") == [b"2"]


def test_their_number_is_bounded_over_all_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "EARLY_UPDATES", 3)
    early = EarlyMessages()
    assert [early.hold(f"s{number}", b"x") for number in range(5)] == [True, True, True, False, False]
    assert early.take("s4") == []  # nothing is kept of what there was no room for, not even its name
    early.take("s0")
    assert early.hold("s9", b"x")


@pytest.mark.parametrize(("session", "line"), [("s", b"x" * 60), ("s" * 60, b"x")])
def test_their_bytes_are_bounded_and_so_are_the_names(
    monkeypatch: pytest.MonkeyPatch, session: str, line: bytes
) -> None:
    monkeypatch.setattr(limits, "EARLY_BYTES", 100)
    early = EarlyMessages()
    assert [early.hold(session, line), early.hold(session, line)] == [True, False]
    early.forget(except_for=None)
    assert early.hold(session, line)
