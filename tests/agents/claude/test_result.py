"""How turns of `claude` end."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.agents.claude import result
from dragoman.wire.errors import AUTH_REQUIRED, INTERNAL_ERROR, NOT_FOUND, RpcError


@pytest.mark.rule("G-160")
@pytest.mark.parametrize(
    ("line", "stop"),
    [
        ({"subtype": "success"}, "end_turn"),
        ({"subtype": "success", "stop_reason": "refusal"}, "refusal"),
        ({"subtype": "success", "stop_reason": "max_tokens"}, "max_tokens"),
        ({"subtype": "cancelled"}, "cancelled"),
        ({"subtype": "max_tokens"}, "max_tokens"),
        ({"subtype": "error_max_turns", "is_error": True}, "max_turn_requests"),
        ({"subtype": "error_max_budget_usd", "is_error": True}, "max_turn_requests"),
        ({"subtype": "error_during_execution", "terminal_reason": "aborted_tools"}, "cancelled"),
    ],
)
def test_stop_reasons(line: dict[str, Any], stop: str) -> None:
    assert result.read(line, cancelled=False)["stopReason"] == stop


def test_after_a_cancel_nothing_is_an_error() -> None:
    line = {"subtype": "error_during_execution", "is_error": True}
    assert result.read(line, cancelled=True)["stopReason"] == "cancelled"


@pytest.mark.rule("G-160")
@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        (
            {"subtype": "success", "is_error": True, "result": "API Error: 529"},
            INTERNAL_ERROR,
            "API Error: 529",
        ),
        ({"subtype": "error_during_execution", "errors": ["boom"]}, INTERNAL_ERROR, "boom"),
        ({"subtype": "success", "is_error": True, "api_error_status": 401}, AUTH_REQUIRED, "claude /login"),
        (
            {"subtype": "success", "is_error": True, "result": "Invalid API key"},
            AUTH_REQUIRED,
            "claude /login",
        ),
        (
            {"subtype": "error_during_execution", "errors": ["No conversation found with"]},
            NOT_FOUND,
            "not found",
        ),
    ],
)
def test_failures_are_errors_that_a_person_understands(line: dict[str, Any], code: int, words: str) -> None:
    with pytest.raises(RpcError) as error:
        result.read(line, cancelled=False)
    assert error.value.code == code
    assert words in error.value.message


def test_usage_and_cost() -> None:
    line = {
        "subtype": "success",
        "usage": {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 5},
        "modelUsage": {"m": {"contextWindow": 200000}},
        "total_cost_usd": 0.5,
    }
    usage = result.read(line, cancelled=False)["usage"]
    assert (usage["totalTokens"], usage["inputTokens"], usage["cachedReadTokens"]) == (12, 3, 5)
    assert result.usage_update(line, {"input_tokens": 7, "output_tokens": 1}) == {
        "sessionUpdate": "usage_update",
        "used": 8,
        "size": 200000,
        "cost": {"amount": 0.5, "currency": "USD"},
    }
