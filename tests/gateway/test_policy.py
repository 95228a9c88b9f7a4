"""Rules answer before people do, with an option that was offered and never a wider one (G-100)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config.model import Decision, PolicyConfig, PolicyRule
from dragoman.gateway.rewriting import dialects
from dragoman.gateway.session.policy.verdict import Verdict, choose_option, decide
from dragoman.policy.requests.request import Surroundings
from support.json_values import VALUES


def rule(decision: Decision, *kinds: str, name: str | None = None) -> PolicyRule:
    return PolicyRule(decision=decision, kind=list(kinds), name=name)


def option(kind: str, option_id: str | None = None) -> dict[str, Any]:
    return {"optionId": option_id or f"id-{kind}", "name": kind, "kind": kind}


class TestDecide:
    def test_without_a_rule_a_person_is_asked(self) -> None:
        assert decide(PolicyConfig(), {"kind": "read"}) == Verdict("ask", "default")

    def test_the_first_matching_rule_decides_and_is_named(self) -> None:
        policy = PolicyConfig(
            rules=[rule("deny", "delete", name="no-rm"), rule("allow", "read", "search"), rule("deny")]
        )
        assert decide(policy, {"kind": "delete"}) == Verdict("deny", "no-rm")
        assert decide(policy, {"kind": "search"}) == Verdict("allow", "rule 2")
        assert decide(policy, {"kind": "execute"}) == Verdict("deny", "rule 3")

    def test_a_rule_on_facts_decides_where_the_facts_are_told(self) -> None:
        command = PolicyRule(decision="allow", command=[["git", "status"]])
        assert decide(PolicyConfig(rules=[command]), {"kind": "execute"}) == Verdict("ask", "default")
        told = {"kind": "execute", "rawInput": {"command": "git status"}}
        here = Surroundings(cwd="/work", workspace="/work")
        assert decide(PolicyConfig(rules=[command]), told, here) == Verdict("allow", "rule 1")
        assert (
            decide(PolicyConfig(rules=[command, rule("allow", "read")]), {"kind": "read"}).decision == "allow"
        )
        assert decide(PolicyConfig(rules=[command, rule("deny")]), {"kind": "execute"}).decision == "deny"

    @pytest.mark.parametrize("table", ["rules", "narrow"])
    def test_a_deny_on_facts_comes_before_an_allow_on_kind(self, table: str) -> None:
        etc = PolicyRule(decision="deny", name="edits", kind=["edit"], paths=["/etc/**"])
        everything = rule("allow", name="all")
        tables = {"rules": [everything], table: [everything, etc]}
        limited = PolicyConfig(rules=tables["rules"], narrow=tables.get("narrow", []))
        edit = {"kind": "edit", "rawInput": {"file_path": "/etc/passwd"}}
        assert decide(limited, edit) == Verdict("deny", "edits")
        assert decide(limited, {**edit, "kind": "read"}) == Verdict("allow", "all")

    def test_a_command_that_is_not_told_may_be_the_denied_one(self) -> None:
        rm = PolicyRule(decision="deny", name="no rm", command=[["rm"]])
        policy = PolicyConfig(rules=[rule("allow", "execute"), rm])
        assert decide(policy, {"kind": "execute"}) == Verdict("ask", "no rm")
        assert decide(policy, {"kind": "execute", "rawInput": {"command": "ls"}}).decision == "allow"

    @pytest.mark.parametrize("tool", [{}, {"kind": None}, {"kind": ""}, {"kind": "other"}])
    def test_a_tool_without_a_kind_is_of_kind_other(self, tool: dict[str, Any]) -> None:
        assert decide(PolicyConfig(rules=[rule("allow", "other")]), tool).decision == "allow"
        assert decide(PolicyConfig(rules=[rule("allow", "read")]), tool).decision == "ask"

    @pytest.mark.parametrize(
        ("own", "narrow", "decided"),
        [
            ("allow", "ask", "ask"),
            ("allow", "deny", "deny"),
            ("ask", "deny", "deny"),
            ("ask", "allow", "ask"),
            ("deny", "allow", "deny"),
            ("deny", "ask", "deny"),
            ("allow", "allow", "allow"),
        ],
    )
    def test_a_workspace_may_narrow_and_never_widen(
        self, own: Decision, narrow: Decision, decided: str
    ) -> None:
        policy = PolicyConfig(rules=[rule(own, name="own")], narrow=[rule(narrow, name="narrow")])
        verdict = decide(policy, {"kind": "read"})
        assert verdict.decision == decided
        assert verdict.rule == ("own" if decided == own else "narrow")

    @given(VALUES)
    def test_any_kind_is_survived(self, kind: Any) -> None:
        policy = PolicyConfig(rules=[rule("allow", "read")], narrow=[rule("deny", "x")])
        assert decide(policy, {"kind": kind}).decision == "ask"


class TestChooseOption:
    ALL = ("allow_always", "reject_always", "reject_once", "allow_once")

    @pytest.mark.parametrize(
        ("decision", "offered", "chosen"),
        [
            ("allow", ALL, "allow_once"),
            ("deny", ALL, "reject_once"),
            # A rule decides about one call: what the agent remembers would hold when the rule is gone.
            ("allow", ("allow_always", "reject_once"), None),
            ("deny", ("allow_once", "reject_always"), "reject_always"),
            ("allow", ("reject_once", "reject_always"), None),
            ("deny", ("allow_once", "allow_always"), None),
            ("ask", ALL, None),
            ("allow", (), None),
            ("allow", ("brand_new",), None),
        ],
    )
    def test_by_kind_and_never_an_allow_for_always(
        self, decision: Decision, offered: tuple[str, ...], chosen: str | None
    ) -> None:
        expected = None if chosen is None else f"id-{chosen}"
        assert choose_option(decision, [option(kind) for kind in offered]) == expected

    def test_the_id_itself_means_nothing(self) -> None:
        offered = [option("reject_once", "allow_once"), option("allow_once", "reject_once")]
        assert choose_option("allow", offered) == "reject_once"
        assert choose_option("deny", offered) == "allow_once"

    def test_an_id_that_two_options_share_or_that_is_no_text_is_never_allowed(self) -> None:
        shared = [option("allow_once", "x"), option("allow_always", "x")]
        assert choose_option("allow", shared) is None
        assert choose_option("allow", [{"kind": "allow_once"}, {"kind": "allow_once", "optionId": 5}]) is None

    @pytest.mark.parametrize("label", ["MySQL", "Always SQLite"])
    def test_of_several_answers_none_is_chosen_but_the_refusal(self, label: str) -> None:
        """Claude Code's AskUserQuestion: a rule permits, and does not know which answer is meant."""
        answers = [option("allow_once", "answer_0"), {**option("allow_once", "answer_1"), "name": label}]
        offered = [*answers, option("reject_once", "none")]
        assert choose_option("allow", offered) is None
        assert choose_option("deny", offered) == "none"

    def test_an_option_that_also_switches_the_mode_is_none_of_them_and_never_chosen(self) -> None:
        """Qwen Code offers it where its classifier is not reached."""
        switch = option("allow_once", "proceed_once_and_switch_to_default")
        assert choose_option("allow", [switch, option("allow_once", "proceed_once")]) == "proceed_once"
        assert choose_option("allow", [switch]) is None

    def test_a_guessed_kind_may_deny_but_never_allow(self) -> None:
        """D-80."""
        params = {"options": [{"optionId": "allow", "title": "Yes"}, {"optionId": "deny", "title": "No"}]}
        dialects.read_permission(params)
        assert choose_option("allow", params["options"]) is None
        assert choose_option("deny", params["options"]) == "deny"

    @given(st.sampled_from(["allow", "deny", "ask"]), VALUES | st.lists(VALUES, max_size=3))
    def test_malformed_options_are_never_chosen(self, decision: Decision, options: Any) -> None:
        assert choose_option(decision, options) is None
