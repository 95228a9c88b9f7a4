"""How much is remembered of questions that were answered."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec

from dragoman.gateway.session.questions.questions import Questions
from dragoman.wire import limits


def test_decisions_are_bounded_in_number_and_in_bytes() -> None:
    session: Any = SimpleNamespace()
    questions = Questions(session)
    for number in range(limits.REMEMBERED_DECISIONS + 5):
        questions._remember_decision(f"small{number}", {"by": "user", "outcome": "yes"})
    assert questions.decision("small4") is None and questions.decision("small5") is not None
    large = {"by": "user", "outcome": "x" * (limits.REMEMBERED_DECISION_BYTES // 3)}
    for number in range(10):
        questions._remember_decision(f"large{number}", large)
    kept = [known for number in range(10) if (known := questions.decision(f"large{number}"))]
    assert 0 < sum(len(msgspec.json.encode(each)) for each in kept) <= limits.REMEMBERED_DECISION_BYTES
    assert questions.decision("large9") == large
    questions._remember_decision(
        "huge", {"by": "user", "outcome": "x" * 2 * limits.REMEMBERED_DECISION_BYTES}
    )
    assert questions.decision("huge") == {"by": "user"}
