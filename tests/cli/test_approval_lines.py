"""Who has to approve, in words."""

from __future__ import annotations

from dragoman.cli.sessions.history import History, _note
from dragoman.cli.terminal.approvals import approval_lines
from dragoman.gateway.delivery import events

WANTED = {
    "rules": [{"rule": "two people", "approvals": 2, "approvers": ["role:approve"]}],
    "promptedBy": "local",
    "since": "2026-11-18T03:00:00.000Z",
    "said": [],
}


def test_a_question_that_the_first_answer_decides_has_no_lines() -> None:
    assert list(approval_lines({})) == []


def test_approvals_in_the_journal_are_shown_with_their_question() -> None:
    history = History()
    _note(history, 1, 0, events.record("question", id="q1", toolCall={}, options=[], approval=WANTED))
    _note(history, 2, 0, events.record("approval", id="q1", by="ann", at="2026-11-18T03:01:00.000Z"))
    assert history.question is not None
    assert list(approval_lines(history.question["approval"])) == [
        "needs 2 of role:approve (rule two people)",
        "approved by ann at 2026-11-18T03:01:00.000Z",
        "prompted by local, waits since 2026-11-18T03:00:00.000Z",
    ]
    assert history.last_events()[-1]["text"] == "by ann"
