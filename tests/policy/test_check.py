"""The checker names file, rule and fix."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.config.model import PolicyRule
from dragoman.policy.check import check_rules
from dragoman.policy.rules import make_rules


def problems(*rules: dict[str, Any]) -> list[str]:
    made = make_rules(
        [PolicyRule(**{"decision": "allow", **keys}) for keys in rules], "user", "/home/me/config.toml"
    )
    return [str(problem) for problem in check_rules(made, ["claude", "codex"])]


def test_the_rules_of_the_documentation_have_no_problem() -> None:
    assert not problems(
        {
            "name": "tests and git reading",
            "command": [["git", ["status", "diff", "log"]], ["pytest"], ["npm", "test"]],
            "match": ["git diff --stat", "pytest -q tests"],
            "not_match": ["git push", "pytest; rm -rf /"],
        },
        {"name": "inside", "decision": "deny", "access": "write", "outside_workspace": True},
        {
            "name": "two",
            "decision": "ask",
            "command": [["kubectl", "apply"]],
            "approvals": 2,
            "approvers": ["role:approve"],
        },
    )


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"command": [["git status"]]}, 'write ["git", "status"]'),
        ({"command": [[]]}, "an empty item"),
        ({"command": [["git"]], "match": ["ls"]}, "`ls` in `match` is not matched: its words are others"),
        ({"command": [["git"]], "match": ["git -c a=b log"]}, "not understood"),
        ({"command": [["git"]], "match": ["git diff --output=x"]}, "`--output=x` writes something"),
        ({"command": [["git"]], "not_match": ["git push"]}, "`git push` in `not_match` is matched"),
        ({"decision": "deny", "command": [["rm"]], "match": ["ls"]}, "`ls` in `match` is not matched"),
        ({"match": ["ls"]}, "which this rule does not have"),
        ({"command": [["ls"]], "kind": ["read"]}, 'add "execute"'),
        ({"command": [["ls"]], "mcp": ["a/b"]}, "make two rules"),
        ({"approvals": 2}, 'need decision = "ask"'),
        ({"decision": "deny", "trust_label": True}, "remove it"),
        ({"outside_workspace": True, "paths": ["{workspace}/x"]}, "remove one of them"),
        ({"paths": ["src/**"]}, 'write "{workspace}/src/**"'),
        ({"hosts": ["https://x.example"]}, "the name of the host alone"),
        ({"mcp": ["server"]}, '"server/tool"'),
        ({"expires": "tomorrow"}, "expected a date"),
        ({"expires": "2020-01-01"}, "it ended on 2020-01-01"),
        ({"agent": ["cluade"]}, 'there is no agent "cluade"'),
        ({"kind": ["exec"]}, '"exec" is no kind of tool call'),
        ({"decision": "ask", "approvers": ["role:boss"]}, "roles are observe, approve, control, admin"),
    ],
)
def test_each_mistake_is_named_with_file_rule_and_fix(keys: dict[str, Any], text: str) -> None:
    found = problems({"name": "mine", **keys})
    assert len(found) == 1, found
    assert found[0].startswith("/home/me/config.toml: mine: ")
    assert text in found[0]


def test_rules_that_can_never_decide_are_found() -> None:
    wide, narrow = {"name": "wide", "command": [["git"]]}, {"name": "narrow", "command": [["git", "status"]]}
    assert "rule wide comes first" in problems(wide, narrow)[0]
    assert not problems(narrow, wide)
    assert "denies everything" in problems({"name": "none", "decision": "deny"}, narrow)[0]
    assert "has the name" in problems(narrow, {"name": "narrow", "command": [["ls"]]})[0]


@pytest.mark.parametrize(
    ("keys", "warned"),
    [
        ({}, True),
        ({"kind": ["execute"]}, True),
        ({"kind": ["read", "execute"], "agent": ["claude"]}, True),
        ({"kind": ["execute"], "boxed": True}, False),
        ({"kind": ["read", "search"]}, False),
        ({"kind": ["execute"], "decision": "ask"}, False),
        ({"command": [["ls"]]}, False),
    ],
)
def test_a_rule_that_allows_every_command_is_warned_about(keys: dict[str, Any], warned: bool) -> None:
    made = make_rules([PolicyRule(**{"decision": "allow", "name": "mine", **keys})], "user", "config.toml")
    found = check_rules(made, ["claude"])
    assert [one.severity for one in found] == (["warning"] if warned else [])
    assert all("say which with" in one.text for one in found)
