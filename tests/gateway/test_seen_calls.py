"""What is stored of tool calls for a question about them, and how little."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.gateway.path_mapping.paths import PathMap
from dragoman.gateway.session.policy.verdict import line_to_host
from dragoman.gateway.session.seen_calls import SeenCalls
from dragoman.wire import limits
from support.json_values import VALUES


def seen(*updates: dict[str, Any]) -> SeenCalls:
    calls = SeenCalls()
    for update in updates:
        calls.see("c", update)
    return calls


def test_a_question_is_filled_with_what_its_call_told() -> None:
    calls = seen(
        {"rawInput": {"command": "ls", "cwd": "/x"}, "name": "bash", "_meta": {"toolName": "bash", "x": 1}},
        {"content": [{"type": "diff", "path": "/a", "newText": "secret"}, {"type": "content"}]},
    )
    question = {
        "toolCallId": "c",
        "title": "List",
        "rawInput": {"command": "ls -l"},
        "content": None,
        "kind": None,
    }
    assert calls.filled(question) == {
        "toolCallId": "c",
        "name": "bash",
        "title": "List",
        "rawInput": {"command": "ls -l", "cwd": "/x"},
        "content": [{"type": "diff", "path": "/a"}],
        "_meta": {"toolName": "bash"},
    }
    assert calls.filled({"toolCallId": "other"}) == {"toolCallId": "other"}
    calls.forget("c")
    assert calls.filled(question) == question


def test_output_stores_nothing() -> None:
    calls = seen({"content": [{"type": "content", "content": {"type": "text", "text": "x"}}], "title": "t"})
    assert calls.filled({"toolCallId": "c"}) == {"toolCallId": "c"}


def test_long_members_are_not_stored_and_not_taken_for_missing() -> None:
    calls = seen({"rawInput": {"command": "x" * 100_000, "content": "y" * 100_000, "cwd": "/x"}})
    filled = calls.filled({"toolCallId": "c"})
    assert filled["rawInput"] == {"command": False, "content": False, "cwd": "/x"}


def test_memory_is_bounded() -> None:
    calls = SeenCalls()
    for number in range(3000):
        members = {f"m{index}": "v" * 8000 for index in range(100)}
        calls.see(
            f"c{number}",
            {"rawInput": {**members, "command": "cd x"}, "locations": [{"path": "p" * 9000}] * 99},
        )
    assert calls.filled({"toolCallId": "c0"}) == {"toolCallId": "c0"}
    kept = [calls.filled({"toolCallId": f"c{number}"}) for number in range(3000)]
    assert len(json.dumps(kept)) < limits.SEEN_TOOL_CALLS * 20_000


@pytest.mark.parametrize(
    ("line", "moved"),
    [
        ("cd sub && make", True),
        ("cd /work && make", False),
        ("cd '/work/' && make", False),
        ("cd", True),
        ("(cd sub; make)", True),
        ("pushd /work/x", True),
        ("popd", True),
        ("echo cdrom; abcd x", False),
        ("true\ncd /etc", True),
        ("x" * 10_000 + "; cd /work", True),
    ],
)
def test_a_line_that_changes_the_folder_is_remembered(line: str, moved: bool) -> None:
    calls = seen({"rawInput": {"command": line}})
    assert calls.moved("other", "/work") is moved
    assert calls.moved("c", "/work") is False
    calls.clear()
    assert calls.moved("other", "/work") is moved


def test_more_changes_than_are_stored_are_not_forgotten() -> None:
    calls = SeenCalls()
    calls.see("first", {"rawInput": {"command": "cd sub"}})
    for number in range(100):
        calls.see(f"c{number}", {"rawInput": {"command": "cd /work"}})
    assert calls.moved("other", "/work")


@given(
    st.dictionaries(st.sampled_from(["rawInput", "content", "locations", "_meta", "name", "title"]), VALUES)
)
def test_any_update_is_survived(update: dict[str, Any]) -> None:
    seen(update).filled({"toolCallId": "c", **update})


def test_lines_of_a_sandbox_are_translated_where_that_keeps_their_words() -> None:
    translate = line_to_host(PathMap([("/home/me/project", "/box")]))
    assert translate is not None and translate("cat '/box/a b' /boxes") == "cat '/home/me/project/a b' /boxes"
    assert line_to_host(PathMap([("/home/me/my project", "/box")])) is None
    assert line_to_host(None) is None
