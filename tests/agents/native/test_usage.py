"""Figures of Claude Code and Codex: sums become those of a turn."""

from __future__ import annotations

from dragoman.agents.claude.spending import Spending
from dragoman.agents.codex.tokens import TurnTokens


def figures(count: int) -> dict[str, int]:
    return {"totalTokens": 3 * count, "inputTokens": 2 * count, "outputTokens": count}


def test_a_turn_of_codex_is_the_difference_of_totals() -> None:
    tokens = TurnTokens()
    tokens.turn_begins()
    assert tokens.used() == {}
    for last, total in ((1, 101), (1, 101), (4, 105)):  # a resumed thread; the same figures twice
        tokens.read({"last": figures(last), "total": figures(total)})
    assert tokens.used()["totalTokens"] == 15
    tokens.turn_begins()
    tokens.read({"last": figures(2), "total": figures(107)})
    assert tokens.used()["inputTokens"] == 4


def test_without_totals_the_requests_of_codex_are_added_up() -> None:
    tokens = TurnTokens()
    tokens.turn_begins()
    tokens.read({"last": figures(2)})
    tokens.read({"last": {"totalTokens": "x", "inputTokens": -1, "outputTokens": True}})
    tokens.read({"last": figures(3)})
    assert tokens.used()["totalTokens"] == 15


def result(cost: float, **models: tuple[int, float]) -> dict[str, object]:
    usage = {name: {"inputTokens": count, "costUSD": each} for name, (count, each) in models.items()}
    return {"total_cost_usd": cost, "modelUsage": usage}


def test_claude_tells_sums_by_model() -> None:
    spending = Spending()
    [first] = spending.read(result(0.5, big=(10, 0.5)))
    assert (first["model"], first["inputTokens"], first["cost"]["amount"]) == ("big", 10, 0.5)
    big, small = spending.read(result(0.8, big=(15, 0.7), small=(1, 0.1)))
    assert (big["inputTokens"], big["cost"]["amount"], small["inputTokens"]) == (5, 0.2, 1)
    assert spending.read({"total_cost_usd": "x", "modelUsage": {"big": None}}) == []


def test_a_resumed_claude_counts_on_from_the_sums_it_begins_with() -> None:
    spending = Spending()
    spending.resume()
    before = result(0.5, big=(10, 0.5))
    spending.begin_with({"session": {"total_cost_usd": 0.5, "model_usage": before["modelUsage"]}})
    [part] = spending.read(result(0.6, big=(12, 0.6)))
    assert (part["inputTokens"], part["cost"]["amount"]) == (2, 0.1)


def test_without_the_sums_that_claude_begins_with_a_turn_has_its_own_tokens() -> None:
    spending = Spending()
    spending.resume()
    spending.begin_with({})
    [part] = spending.read({**result(0.6, big=(12, 0.6)), "usage": {"input_tokens": 2, "output_tokens": 1}})
    assert (part["inputTokens"], part["outputTokens"], part["model"]) == (2, 1, "big")
    assert "cost" not in part, "the ledger knows what the session cost before"
    spending.begin_with({"session": {"total_cost_usd": 0.9, "model_usage": {}}})  # too late
    [part] = spending.read(result(0.9, big=(20, 0.9)))
    assert (part["inputTokens"], part["cost"]["amount"]) == (8, 0.3)
