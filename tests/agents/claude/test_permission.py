"""What people may choose when `claude` asks."""

from __future__ import annotations

from typing import Any

from dragoman.agents.claude import permission
from dragoman.agents.native.permission import Choice

RULE = {
    "type": "addRules",
    "rules": [{"toolName": "Bash", "ruleContent": "make *"}],
    "behavior": "allow",
    "destination": "localSettings",
}
EDITS = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}


def ask(name: str, given: dict[str, Any], *suggestions: dict[str, Any]) -> list[Choice]:
    return permission.choices(
        {"tool_name": name, "input": given, "permission_suggestions": list(suggestions)}
    )


def test_each_suggestion_is_a_choice_that_says_how_far_it_reaches() -> None:
    offered = ask("Bash", {"command": "make"}, RULE, EDITS)
    assert [(each.option["name"], each.option["kind"]) for each in offered] == [
        ("Allow once", "allow_once"),
        ("Always allow `make *` in this project", "allow_always"),
        ("Always allow all edits in this session", "allow_always"),
        ("Reject", "reject_once"),
    ]
    chosen = permission.chosen(offered, {"outcome": "selected", "optionId": "allow_always_1"})
    assert chosen == {"behavior": "allow", "updatedInput": {"command": "make"}, "updatedPermissions": [RULE]}


def test_once_changes_no_rule() -> None:
    offered = ask("Bash", {"command": "make"}, RULE)
    chosen = permission.chosen(offered, {"outcome": "selected", "optionId": "allow"})
    assert chosen == {"behavior": "allow", "updatedInput": {"command": "make"}}


def test_no_is_no_and_the_turn_goes_on() -> None:
    chosen = permission.chosen(ask("Bash", {}), {"outcome": "selected", "optionId": "reject"})
    assert chosen["behavior"] == "deny"
    assert "interrupt" not in chosen


def test_claude_is_told_the_reason_of_a_rule() -> None:
    offered = ask("Bash", {"command": "rm x"})
    for outcome in ({"outcome": "selected", "optionId": "reject"}, {"outcome": "cancelled"}):
        chosen = permission.chosen(offered, {**outcome, "reason": "Move it to the bin."})
        assert chosen["message"] == "A rule does not allow this: Move it to the bin."
    allowed = permission.chosen(offered, {"outcome": "selected", "optionId": "allow", "reason": "x"})
    assert "message" not in allowed


def test_anything_but_an_offered_choice_is_a_no_that_ends_the_turn() -> None:
    for outcome in ({"outcome": "cancelled"}, {"outcome": "selected", "optionId": "novel"}, None, "allow"):
        chosen = permission.chosen(ask("Bash", {}), outcome)
        assert (chosen["behavior"], chosen["interrupt"]) == ("deny", True)


def test_a_finished_plan_asks_how_to_go_on() -> None:
    offered = ask("ExitPlanMode", {"plan": "dig"})
    assert [each.option["optionId"] for each in offered] == ["acceptEdits", "default", "reject"]
    chosen = permission.chosen(offered, {"outcome": "selected", "optionId": "acceptEdits"})
    assert chosen["updatedPermissions"] == [EDITS]


def test_a_question_of_claude_is_answered_by_its_labels() -> None:
    question = {"question": "Which?", "options": [{"label": "red"}, {"label": "blue"}]}
    given = {"questions": [question]}
    offered = permission.answers(given, question)
    chosen = permission.chosen(offered, {"outcome": "selected", "optionId": "answer_1"})
    assert chosen["updatedInput"]["answers"] == {"Which?": "blue"}
