"""Whatever an agent sends, a request becomes an act, and rules for facts never allow what is not told."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config.model import PolicyRule
from dragoman.policy.decide import Policy
from dragoman.policy.requests import shapes
from dragoman.policy.requests.request import Surroundings, act_of_request
from dragoman.policy.rules import make_rules
from support.json_values import VALUES

HERE = Surroundings(cwd="/work", workspace="/work")
MEMBERS = [
    *shapes.COMMANDS, *shapes.FOLDERS, *shapes.PATHS, *shapes.PATH_LISTS, *shapes.CHANGES, *shapes.ADDRESSES,
    *shapes.GRANTS, "server", "tool",
]  # fmt: skip
WORDS = st.sampled_from(
    ["", "git status", "/work/a", "../x", "a\0b", "\ud800", "~root/x", "file://x/%00", "?", "a" * 5000]
)
ODD = (
    VALUES
    | WORDS
    | st.lists(WORDS, max_size=3)
    | st.dictionaries(st.sampled_from(["path", "kind", "text"]), WORDS)
)
INPUTS = st.dictionaries(st.sampled_from(MEMBERS), ODD, max_size=4)
TOOLS = st.fixed_dictionaries(
    {},
    optional={
        "toolCallId": ODD | st.just("run_shell_command__1"),
        "name": ODD | st.sampled_from([*shapes.TOOLS, "mcp__a__b"]),
        "kind": ODD | st.sampled_from(["read", "edit", "execute", "fetch", "other"]),
        "title": ODD,
        "rawInput": INPUTS | ODD,
        "content": st.lists(st.fixed_dictionaries({"type": st.just("diff"), "path": ODD}) | ODD, max_size=3)
        | ODD,
        "locations": st.lists(st.fixed_dictionaries({"path": ODD}) | ODD, max_size=3) | ODD,
        "_meta": ODD | st.fixed_dictionaries({"dragoman": ODD, "claudeCode": ODD, "toolName": ODD}),
    },
)
NARROW = Policy(
    user=make_rules(
        [
            PolicyRule(decision="allow", command=[["git", "status"]]),
            PolicyRule(decision="allow", access="write", paths=["/work/only/**"]),
            PolicyRule(decision="allow", hosts=["good.example"]),
            PolicyRule(decision="allow", mcp=["good/tool"]),
        ],
        "user",
        "config.toml",
    )
)


@given(TOOLS)
def test_it_never_raises_and_never_allows_but_what_is_told(tool: dict[str, Any]) -> None:
    act = act_of_request(tool, HERE)
    act.facts()
    verdict = NARROW.decide(act)
    assert verdict.decision == "ask" or (tells_git_status(tool) and verdict.rule == "rule 1")


def tells_git_status(tool: dict[str, Any]) -> bool:
    given = tool.get("rawInput")
    told = [given.get(member) for member in shapes.COMMANDS] if isinstance(given, dict) else []
    return "git status" in (*told, tool.get("title")) or ["git", "status"] in told


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = {"path": [value], "rawInput": value}
    return value


@pytest.mark.parametrize(
    "tool",
    [
        {"kind": "execute", "rawInput": {"command": "x;" * 500_000}},
        {"kind": "edit", "rawInput": {"file_path": "/a" * 500_000}},
        {"kind": "edit", "rawInput": {"changes": [{"path": "/a" * 2000}] * 100_000}},
        {"kind": "edit", "rawInput": {"filepath": "a, " * 500_000}},
        {"kind": "fetch", "rawInput": {"url": ["http://x"] * 100_000}},
        {
            "kind": "x" * 1_000_000,
            "name": "y" * 1_000_000,
            "title": "z" * 1_000_000,
            "toolCallId": "_" * 1_000_000,
        },
        {"kind": "edit", "rawInput": nested(400), "locations": nested(400), "_meta": nested(400)},
    ],
    ids=lambda tool: ",".join(tool),
)
def test_large_and_deep_input_ends_quickly_and_asks(tool: dict[str, Any]) -> None:
    began = time.process_time()
    assert NARROW.decide(act_of_request(tool, HERE)).decision == "ask"
    assert time.process_time() - began < 2
