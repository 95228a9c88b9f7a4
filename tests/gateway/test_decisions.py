"""How much is remembered of questions that were answered."""

from __future__ import annotations

import msgspec

from dragoman.gateway.session.questions.decisions import RecentDecisions
from dragoman.wire import limits


def test_decisions_are_bounded_in_number_and_in_bytes() -> None:
    questions = RecentDecisions()
    for number in range(limits.REMEMBERED_DECISIONS + 5):
        questions.add(f"small{number}", {"by": "user", "outcome": "yes"})
    assert questions.get("small4") is None and questions.get("small5") is not None
    large = {"by": "user", "outcome": "x" * (limits.REMEMBERED_DECISION_BYTES // 3)}
    for number in range(10):
        questions.add(f"large{number}", large)
    kept = [known for number in range(10) if (known := questions.get(f"large{number}"))]
    assert 0 < sum(len(msgspec.json.encode(each)) for each in kept) <= limits.REMEMBERED_DECISION_BYTES
    assert questions.get("large9") == large
    questions.add("huge", {"by": "user", "outcome": "x" * 2 * limits.REMEMBERED_DECISION_BYTES})
    assert questions.get("huge") == {"by": "user"}
