"""What people may choose when Codex asks, in its present and in its former words."""

from __future__ import annotations

import pytest

from dragoman.agents.codex import approval

AMENDMENT = {"proposedExecpolicyAmendment": ["make", "all"]}


@pytest.mark.rule("G-161")
@pytest.mark.parametrize(
    ("method", "option", "decision"),
    [
        (approval.COMMAND, "accept", "accept"),
        (approval.COMMAND, "accept_session", "acceptForSession"),
        (
            approval.COMMAND,
            "accept_rule",
            {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["make", "all"]}},
        ),
        (approval.COMMAND, "decline", "decline"),
        (approval.COMMAND, "novel", "cancel"),
        (approval.FILE_CHANGE, "accept", "accept"),
        (approval.LEGACY_COMMAND, "accept", "approved"),
        (approval.LEGACY_COMMAND, "accept_session", "approved_for_session"),
        (
            approval.LEGACY_COMMAND,
            "accept_rule",
            {"approved_execpolicy_amendment": {"proposed_execpolicy_amendment": ["make", "all"]}},
        ),
        (approval.LEGACY_PATCH, "decline", "denied"),
        (approval.LEGACY_PATCH, "novel", "abort"),
    ],
)
def test_decisions(method: str, option: str, decision: object) -> None:
    offered = approval.choices(method, AMENDMENT)
    told = approval.answer(method, offered, {"outcome": "selected", "optionId": option})
    assert told == {"decision": decision}


@pytest.mark.rule("G-161")
@pytest.mark.parametrize(("method", "word"), [(approval.COMMAND, "cancel"), (approval.LEGACY_PATCH, "abort")])
def test_a_cancelled_question_ends_the_turn(method: str, word: str) -> None:
    told = approval.answer(method, approval.choices(method, {}), {"outcome": "cancelled"})
    assert told == {"decision": word}


def test_a_host_and_wider_permissions_are_told_for_rules() -> None:
    asked = {
        "networkApprovalContext": {"host": "a.org", "protocol": "https"},
        "additionalPermissions": {"x": 1},
    }
    assert approval.beyond(asked) == {"url": "a.org", "additionalPermissions": {"x": 1}}
    assert approval.beyond({"command": "ls"}) == {}


def test_a_rule_is_only_offered_where_codex_proposes_one() -> None:
    ids = [choice.option["optionId"] for choice in approval.choices(approval.COMMAND, {})]
    assert ids == ["accept", "accept_session", "decline"]
