"""Notifications of Codex, as observed, and the updates that they stand for."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.agents.codex.items import Items

COMMAND: dict[str, Any] = {
    "type": "commandExecution",
    "id": "i1",
    "command": "/bin/zsh -lc 'make all'",
    "cwd": "/w",
    "status": "inProgress",
    "commandActions": [],
    "aggregatedOutput": None,
    "exitCode": None,
}


def read(items: Items, *told: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [update for method, params in told for update in items.read(method, params)]


@pytest.mark.parametrize(
    ("method", "kind", "whole"),
    [
        ("item/agentMessage/delta", "agent_message_chunk", {"type": "agentMessage", "text": "Hello"}),
        (
            "item/reasoning/summaryTextDelta",
            "agent_thought_chunk",
            {"type": "reasoning", "summary": ["Hello"]},
        ),
    ],
)
def test_what_was_streamed_is_not_said_again(method: str, kind: str, whole: dict[str, Any]) -> None:
    deltas = [(method, {"itemId": "i1", "delta": part}) for part in ("Hel", "lo")]
    updates = read(Items(), *deltas, ("item/completed", {"item": {**whole, "id": "i1"}}))
    assert [(each["sessionUpdate"], each["content"]["text"]) for each in updates] == [
        (kind, "Hel"),
        (kind, "lo"),
    ]
    (alone,) = read(Items(), ("item/completed", {"item": {**whole, "id": "i1"}}))
    assert (alone["sessionUpdate"], alone["content"]["text"]) == (kind, "Hello")


def test_the_places_of_a_command_are_absolute() -> None:
    actions = [{"type": "read", "path": path} for path in ("src/a.py", "/x/b.py", "../c.py", None)]
    (started,) = read(Items(), ("item/started", {"item": {**COMMAND, "commandActions": actions}}))
    assert [each["path"] for each in started["locations"]] == ["/w/src/a.py", "/x/b.py", "/c.py"]


@pytest.mark.rule("G-161")
def test_a_command_is_complete_only_when_it_has_ended() -> None:
    done = {**COMMAND, "status": "completed", "aggregatedOutput": "built\n", "exitCode": 2, "durationMs": 12}
    started, printing, ended = read(
        Items(),
        ("item/started", {"item": COMMAND}),
        ("item/commandExecution/outputDelta", {"itemId": "i1", "delta": "bu"}),
        ("item/completed", {"item": done}),
    )
    assert (started["status"], started["title"], started["kind"]) == ("in_progress", "make all", "execute")
    assert started["content"] == printing["content"] == [{"type": "terminal", "terminalId": "i1"}]
    assert started["_meta"]["terminal_info"] == {"terminal_id": "i1", "cwd": "/w"}
    assert printing["_meta"]["terminal_output"] == {"terminal_id": "i1", "data": "bu"}
    assert ended["status"] == "completed"
    assert ended["rawOutput"] == {"output": "built\n", "exitCode": 2, "durationMs": 12}
    assert ended["content"] == started["content"]
    assert ended["_meta"] == {"terminal_exit": {"terminal_id": "i1", "exit_code": 2, "signal": None}}


def test_a_command_that_only_reads_says_so_and_where() -> None:
    actions = [{"type": "read", "command": "cat a", "name": "a", "path": "/w/a"}]
    (call,) = read(Items(), ("item/started", {"item": {**COMMAND, "commandActions": actions}}))
    assert (call["kind"], call["locations"]) == ("read", [{"path": "/w/a"}])


def test_a_file_change_is_a_diff_per_hunk_with_its_line() -> None:
    diff = "@@ -1,2 +1,2 @@\n same\n-old\n+new\n@@ -9 +9,2 @@\n end\n+more\n"
    change = {"path": "/w/a", "kind": {"type": "update", "move_path": None}, "diff": diff}
    item = {"type": "fileChange", "id": "i1", "changes": [change], "status": "completed"}
    (call,) = read(Items(), ("item/completed", {"item": item}))
    assert call["content"] == [
        {"type": "diff", "path": "/w/a", "oldText": "same\nold", "newText": "same\nnew"},
        {"type": "diff", "path": "/w/a", "oldText": "end", "newText": "end\nmore"},
    ]
    assert call["locations"] == [{"path": "/w/a", "line": 1}, {"path": "/w/a", "line": 9}]


@pytest.mark.parametrize(("kind", "old", "new"), [("add", None, "x\n"), ("delete", "x\n", "")])
def test_a_new_or_removed_file_is_shown_whole(kind: str, old: str | None, new: str) -> None:
    change = {"path": "/w/a", "kind": {"type": kind}, "diff": "x\n"}
    item = {"type": "fileChange", "id": "i1", "changes": [change], "status": "completed"}
    (call,) = read(Items(), ("item/completed", {"item": item}))
    assert call["content"] == [{"type": "diff", "path": "/w/a", "oldText": old, "newText": new}]


def test_a_declined_call_is_failed_and_an_open_one_is_closed_with_the_turn() -> None:
    items = Items()
    read(items, ("item/started", {"item": COMMAND}))
    (ended,) = read(items, ("item/completed", {"item": {**COMMAND, "status": "declined"}}))
    assert ended["status"] == "failed"
    read(items, ("item/started", {"item": {**COMMAND, "id": "i2"}}))
    assert items.end_turn() == [{"sessionUpdate": "tool_call_update", "toolCallId": "i2", "status": "failed"}]


def test_plan_usage_and_title() -> None:
    plan, usage, title = read(
        Items(),
        ("turn/plan/updated", {"plan": [{"step": "dig", "status": "inProgress"}]}),
        (
            "thread/tokenUsage/updated",
            {"tokenUsage": {"last": {"totalTokens": 7}, "modelContextWindow": 100}},
        ),
        ("thread/name/updated", {"threadName": "Holes"}),
    )
    assert plan["entries"] == [{"content": "dig", "priority": "medium", "status": "in_progress"}]
    assert usage == {"sessionUpdate": "usage_update", "used": 7, "size": 100}
    assert title == {"sessionUpdate": "session_info_update", "title": "Holes"}


def test_a_tool_of_an_mcp_server() -> None:
    item = {"type": "mcpToolCall", "id": "i1", "server": "s", "tool": "t", "arguments": {"a": 1}, "status": "completed",
            "result": {"content": [{"type": "text", "text": "ok"}]}}  # fmt: skip
    (call,) = read(Items(), ("item/completed", {"item": item}))
    assert (call["title"], call["rawInput"]) == ("s: t", {"a": 1})
    assert call["content"] == [{"type": "content", "content": {"type": "text", "text": "ok"}}]


@pytest.mark.parametrize("params", [{}, {"item": None}, {"item": {"type": "novel", "id": "x"}}])
def test_items_of_another_shape_are_nothing(params: dict[str, Any]) -> None:
    items = Items()
    assert read(items, ("item/started", params), ("item/completed", params), ("novel/thing", params)) == []
