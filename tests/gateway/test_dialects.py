"""Older and foreign shapes, row by row (D-…), and v1 itself, which nothing touches."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.gateway.rewriting import dialects
from support.json_values import OBJECTS, VALUES

TEXT = {"type": "text", "text": "hi"}
WRAPPED = {"type": "content", "content": TEXT}
DRAGOMAN = "dragoman"


def update(name: str, /, **members: Any) -> dict[str, Any]:
    return {"sessionUpdate": name, **members}


UPDATES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("D-60", update("thought_chunk", content=TEXT), update("agent_thought_chunk", content=TEXT)),
    (
        "D-60",
        update("thinking_chunk", content=TEXT, x=None),
        update("agent_thought_chunk", content=TEXT, x=None),
    ),
    (
        "D-62 nested",
        update(
            "tool_call",
            toolCall={"toolCallId": "t", "toolName": "sh", "arguments": {"a": 1}, "status": "pending"},
        ),
        update(
            "tool_call",
            toolCallId="t",
            title="sh",
            rawInput={"a": 1},
            status="pending",
            _meta={DRAGOMAN: {"toolName": "sh"}},
        ),
    ),
    (
        "D-62 flat",
        update("tool_call", toolCallId="t", toolName="sh", title="Run", arguments=[], _meta={"k": 1}),
        update(
            "tool_call",
            toolCallId="t",
            title="Run",
            rawInput=[],
            _meta={"k": 1, DRAGOMAN: {"toolName": "sh"}},
        ),
    ),
    (
        "D-62 the outer member wins",
        update("tool_call", toolCallId="t", toolCall={"toolCallId": "u", "title": "x"}),
        update("tool_call", toolCallId="t", title="x"),
    ),
    (
        "D-63 result is a block",
        update("tool_call_update", toolCallId="t", result=TEXT),
        update("tool_call_update", toolCallId="t", content=[WRAPPED]),
    ),
    (
        "D-63 result is text",
        update("tool_call_update", toolCallId="t", result="hi"),
        update("tool_call_update", toolCallId="t", rawOutput="hi", content=[WRAPPED]),
    ),
    (
        "D-63 result is something else",
        update("tool_call_update", toolCallId="t", result={"exit": 0}),
        update("tool_call_update", toolCallId="t", rawOutput={"exit": 0}),
    ),
    (
        "D-63 bare entries",
        update(
            "tool_call_update",
            toolCallId="t",
            content=[TEXT, {"terminalId": "1"}, {"path": "/a", "oldText": None, "newText": "b"}, WRAPPED],
        ),
        update(
            "tool_call_update",
            toolCallId="t",
            content=[
                WRAPPED,
                {"type": "terminal", "terminalId": "1"},
                {"type": "diff", "path": "/a", "oldText": None, "newText": "b"},
                WRAPPED,
            ],
        ),
    ),
    (
        "D-121",
        update("tool_call", toolCallId="t", title="x", content=[{"type": "image", "data": ""}]),
        update(
            "tool_call",
            toolCallId="t",
            title="x",
            content=[{"type": "content", "content": {"type": "image", "data": ""}}],
        ),
    ),
    *[
        (
            f"D-64 {old}",
            update("tool_call_update", toolCallId="t", status=old),
            update("tool_call_update", toolCallId="t", status=new),
        )
        for old, new in [
            ("executing", "in_progress"),
            ("running", "in_progress"),
            ("error", "failed"),
            ("cancelled", "failed"),
            ("done", "completed"),
            ("success", "completed"),
        ]
    ],
    (
        "D-65",
        update("tool_call", toolCallId="t", kind="write"),
        update("tool_call", toolCallId="t", kind="edit"),
    ),
    (
        "D-66 steps",
        update("plan", plan={"steps": [{"id": "1", "description": "do it"}]}),
        update(
            "plan",
            entries=[
                {
                    "content": "do it",
                    "priority": "medium",
                    "status": "pending",
                    "_meta": {DRAGOMAN: {"id": "1"}},
                }
            ],
        ),
    ),
    (
        "D-66 entries without a priority",
        update("plan", entries=[{"id": 7, "content": "x", "status": "completed"}]),
        update(
            "plan",
            entries=[
                {"content": "x", "status": "completed", "priority": "medium", "_meta": {DRAGOMAN: {"id": 7}}}
            ],
        ),
    ),
    (
        "D-67",
        update("available_commands", availableCommands=[{"name": "a"}]),
        update("available_commands_update", availableCommands=[{"name": "a"}]),
    ),
    (
        "D-67 the old member",
        update("available_commands", commands=[{"name": "a"}]),
        update("available_commands_update", availableCommands=[{"name": "a"}]),
    ),
    (
        "D-68",
        update(
            "available_commands_update",
            availableCommands=[{"name": "a", "input": {"unstructured": {"hint": "h"}}}],
        ),
        update("available_commands_update", availableCommands=[{"name": "a", "input": {"hint": "h"}}]),
    ),
    (
        "D-69",
        update("current_mode_update", currentMode="m"),
        update("current_mode_update", currentModeId="m"),
    ),
    ("D-120", update("current_mode_update", modeId="m"), update("current_mode_update", currentModeId="m")),
    (
        "D-33",  # the name stays until the list is completed (D-70, `Options.read_update`)
        update("config_options", configOptions=[{"id": "o", "values": [{"id": "a", "name": "A"}]}]),
        update(
            "config_options",
            configOptions=[{"id": "o", "options": [{"value": "a", "name": "A"}], "type": "select"}],
        ),
    ),
]

V1 = [
    update("agent_message_chunk", content=TEXT),
    update("agent_thought_chunk", content=TEXT, messageId="m"),
    update("user_message_chunk", content=TEXT),
    update(
        "tool_call",
        toolCallId="t",
        title="x",
        kind="read",
        status="pending",
        content=[WRAPPED],
        rawInput=None,
    ),
    update("tool_call", toolCallId="t", title="x", kind="brand_new_kind", status="brand_new_status"),
    update("tool_call_update", toolCallId="t", content=None, locations=[{"path": "/a"}]),
    update("tool_call_update", toolCallId="t", content=[{"type": "brand_new"}, {"no": "type"}, "text", None]),
    update("plan", entries=[{"id": 1, "content": "x", "priority": "high", "status": "pending"}]),
    update("plan", entries=[]),
    update(
        "available_commands_update",
        availableCommands=[{"name": "a", "input": {"hint": "h"}}, {"name": "b", "input": None}],
    ),
    update("current_mode_update", currentModeId="m", modeId="kept"),
    update(
        "config_option_update",
        configOptions=[
            {"id": "o", "type": "select", "options": [{"value": "a", "id": "kept"}]},
            {"id": "g", "type": "select", "options": [{"group": "x", "options": [{"value": "a"}]}]},
            {"id": "b", "type": "boolean", "currentValue": True},
        ],
    ),
    update("session_info_update", title=None),
    update("usage_update", used=1),
    update("notice", text="new"),
    update("_vendor/x", toolName="kept", status="running"),
]


class TestUpdates:
    @pytest.mark.parametrize(("row", "old", "new"), UPDATES, ids=[row for row, _, _ in UPDATES])
    def test_a_dialect_becomes_v1(self, row: str, old: dict[str, Any], new: dict[str, Any]) -> None:
        assert dialects.read_update(copy.deepcopy(old)) == [new]

    @pytest.mark.parametrize(("row", "old", "new"), UPDATES, ids=[row for row, _, _ in UPDATES])
    def test_what_was_read_needs_no_more_reading(
        self, row: str, old: dict[str, Any], new: dict[str, Any]
    ) -> None:
        assert dialects.read_update(copy.deepcopy(new)) is None

    @pytest.mark.parametrize("known", V1, ids=lambda known: known["sessionUpdate"])
    def test_v1_is_left_alone(self, known: dict[str, Any]) -> None:
        given = copy.deepcopy(known)
        assert dialects.read_update(given) is None
        assert given == known

    @pytest.mark.parametrize(
        ("content", "blocks"),
        [
            (TEXT, [TEXT]),
            ("hi", [TEXT]),
            ([TEXT, "hi", {"type": "image", "data": ""}], [TEXT, TEXT, {"type": "image", "data": ""}]),
        ],
    )
    def test_a_whole_user_message_becomes_chunks(self, content: Any, blocks: list[Any]) -> None:
        """D-61."""
        read = dialects.read_update(update("user_message", content=content, messageId="m", _meta={"k": 1}))
        assert read == [
            update("user_message_chunk", content=block, messageId="m", _meta={"k": 1}) for block in blocks
        ]

    @given(st.sampled_from([*dialects.UPDATE_READERS, *dialects.RENAMED_KINDS]), OBJECTS)
    def test_unknown_members_survive_every_reader(self, kind: str, extra: dict[str, Any]) -> None:
        given = update(kind, **extra)
        read = dialects.read_update(copy.deepcopy(given)) or [given]
        assert {**read[0], "sessionUpdate": kind} == given


class TestSessionResults:
    def test_modes_and_options_in_their_old_shape(self) -> None:
        """D-33, D-34."""
        result = {
            "sessionId": "s",
            "modes": {"currentMode": "ask", "availableModes": []},
            "configOptions": [{"id": "o", "values": [{"id": "a", "name": "A"}], "x": None}],
        }
        assert dialects.read_session_result(result)
        assert result == {
            "sessionId": "s",
            "modes": {"currentModeId": "ask", "availableModes": []},
            "configOptions": [
                {"id": "o", "options": [{"value": "a", "name": "A"}], "type": "select", "x": None}
            ],
        }

    @pytest.mark.parametrize(
        "result",
        [
            {},
            {"sessionId": "s", "modes": None, "configOptions": None},
            {"modes": {"currentModeId": "a", "currentMode": "kept"}, "configOptions": []},
        ],
    )
    def test_v1_is_left_alone(self, result: dict[str, Any]) -> None:
        before = copy.deepcopy(result)
        assert not dialects.read_session_result(result)
        assert result == before


class TestStopReasons:
    @pytest.mark.parametrize("reason", [*sorted(dialects.STOP_REASONS), "error"])
    def test_v1_reasons_and_errors_are_left_alone(self, reason: str) -> None:
        """D-50; an `error` becomes one elsewhere."""
        assert dialects.read_stop_reason({"stopReason": reason}) is None

    @pytest.mark.parametrize(
        ("reason", "emitted"),
        [
            ("tool_use", "end_turn"),
            ("max_turns", "end_turn"),
            ("brand_new", "end_turn"),
            (None, "end_turn"),
        ],
    )
    def test_others_become_v1_with_the_original_kept(self, reason: Any, emitted: str) -> None:
        """D-50."""
        assert dialects.read_stop_reason({"stopReason": reason, "usage": {"x": None}, "_meta": {"k": 1}}) == {
            "stopReason": emitted,
            "usage": {"x": None},
            "_meta": {"k": 1, DRAGOMAN: {"stopReason": reason}},
        }


class TestHostileShapes:
    """Members of the wrong type are the agent's fault and pass on; a reader that raises would lose the message."""

    @example("tool_call", {"toolName": "x", "_meta": None})
    @example("tool_call", {"content": [{"type": []}]})
    @example("plan", {"entries": [{"id": 1, "_meta": None}]})
    @given(
        st.sampled_from(sorted(dialects.UPDATE_READERS)),
        st.dictionaries(
            st.sampled_from(
                [
                    "toolCall",
                    "toolName",
                    "arguments",
                    "status",
                    "kind",
                    "result",
                    "content",
                    "plan",
                    "steps",
                    "entries",
                    "commands",
                    "currentMode",
                    "modeId",
                    "availableCommands",
                    "configOptions",
                    "_meta",
                ]
            ),
            VALUES
            | st.lists(
                st.dictionaries(
                    st.sampled_from(
                        [
                            "type",
                            "kind",
                            "status",
                            "id",
                            "values",
                            "options",
                            "input",
                            "description",
                            "_meta",
                            "content",
                        ]
                    ),
                    VALUES,
                ),
                max_size=2,
            ),
        ),
    )
    def test_updates(self, kind: str, members: dict[str, Any]) -> None:
        dialects.read_update(update(kind, **members))

    @example({"kind": []}, None)
    @example({"_meta": None}, None)
    @given(st.dictionaries(st.sampled_from(["optionId", "name", "title", "kind", "_meta"]), VALUES), VALUES)
    def test_permissions(self, option: dict[str, Any], tool: Any) -> None:
        dialects.read_permission({"options": [option], "toolCall": tool})

    @example([])
    @given(VALUES)
    def test_stop_reasons(self, reason: Any) -> None:
        dialects.read_stop_reason({"stopReason": reason, "_meta": reason})

    @given(VALUES, VALUES)
    def test_session_results(self, modes: Any, options: Any) -> None:
        dialects.read_session_result({"modes": modes, "configOptions": options})
        dialects.read_session_result({"configOptions": [{"values": [options], "options": modes}]})

    @example([], "")
    @given(VALUES, VALUES)
    def test_errors(self, code: Any, text: Any) -> None:
        dialects.is_session_lost({"code": code, "message": text})
