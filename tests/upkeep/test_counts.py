"""How numbers are put into words."""

from __future__ import annotations

from dragoman.gateway.delivery.attachment import missing
from dragoman.upkeep.counts import are, counted, events, size


def test_one_is_not_several() -> None:
    assert (counted(1, "session"), counted(2, "session")) == ("1 session", "2 sessions")
    assert (events([(3, 3)]), are([(3, 3)])) == ("event 3", "is")
    assert (events([(3, 5), (9, 9)]), are([(3, 5), (9, 9)])) == ("events 3 to 5, 9", "are")
    assert events([(n, n) for n in range(1, 7)]) == "events 1, 2, 3, 4, 5 and 1 more part"
    assert (
        missing(3, 3, damaged=True) == "Event 3 of this conversation is damaged in the journal and left out."
    )
    assert missing(3, 4).startswith("Events 3 to 4 of this conversation are not kept any more")


def test_little_is_not_nothing() -> None:
    assert [size(count) for count in (1_234, 99_000, 100_000, 5_000_000_000)] == [
        "1.2 KB",
        "99.0 KB",
        "0.1 MB",
        "5,000.0 MB",
    ]
