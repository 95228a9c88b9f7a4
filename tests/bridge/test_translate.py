"""One journal event makes one bridge event, whatever it is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.bridge.events.translate import translate
from dragoman.gateway.delivery import events
from dragoman.gateway.rewriting.updates import update_line
from dragoman.wire.timestamps import timestamp
from support.json_values import OBJECTS

Json = dict[str, Any]


def shown(event: bytes) -> Json:
    made: Json = json.loads(translate("dgm_1", 7, "now", event))
    assert (made.pop("sessionId"), made.pop("seq"), made.pop("timestamp")) == ("dgm_1", 7, "now")
    return made


def update(kind: str, /, **fields: object) -> Json:
    return shown(b"U" + update_line("dgm_1", {"sessionUpdate": kind, **fields}))


def prompt(**fields: object) -> Json:
    """A part of a prompt, which is the only thing that is a person's own word."""
    return shown(events.PROMPT + update_line("dgm_1", {"sessionUpdate": "user_message_chunk", **fields}))


def record(kind: str, /, **facts: object) -> Json:
    return shown(events.record(kind, **facts))


TEXT = {"type": "text", "text": "hi"}
IMAGE = {"type": "image", "data": "AA", "mimeType": "image/png"}
SHOWN = {"type": "content", "content": TEXT}
MODES = {"currentModeId": "a", "availableModes": [{"id": "a", "name": "A"}]}
CALL = {"toolCallId": "t", "title": "Read a", "kind": "read"}

UPDATES: list[tuple[Json, Json]] = [
    (update("agent_message_chunk", content=TEXT), {"type": "message_chunk", "content": "hi"}),
    (
        update("agent_message_chunk", content=IMAGE, messageId="m"),
        {"type": "message_chunk", "content": "", "block": IMAGE, "messageId": "m"},
    ),
    (update("agent_thought_chunk", content=TEXT), {"type": "thought_chunk", "content": "hi"}),
    (prompt(content=TEXT), {"type": "user_message", "content": TEXT}),
    (
        update("user_message_chunk", content=TEXT),
        {"type": "user_message", "content": TEXT, "author": "agent"},
    ),
    (
        prompt(content=TEXT, _meta={"dragoman": {"clientMessageId": "c"}}),
        {"type": "user_message", "content": TEXT, "clientMessageId": "c"},
    ),
    (
        update("tool_call", **CALL, rawInput={"path": "a"}, _meta={"claudeCode": {"toolName": "Read"}}),
        {
            "type": "tool_call_started",
            **CALL,
            "toolName": "Read",
            "arguments": {"path": "a"},
        },
    ),
    (
        update("tool_call", toolCallId="t"),
        {
            "type": "tool_call_started",
            "toolCallId": "t",
            "toolName": "tool",
            "title": "tool",
            "kind": "other",
            "arguments": {},
        },
    ),
    (
        update("tool_call_update", toolCallId="t", status="in_progress"),
        {"type": "tool_call_progress", "toolCallId": "t", "status": "in_progress"},
    ),
    (
        update("tool_call_update", toolCallId="t", status="failed", rawOutput={"code": 1}),
        {
            "type": "tool_call_completed",
            "toolCallId": "t",
            "status": "failed",
            "result": {"code": 1},
        },
    ),
    (
        update(
            "tool_call_update",
            toolCallId="t",
            status="completed",
            content=[{"type": "content", "content": TEXT}],
        ),
        {
            "type": "tool_call_completed",
            "toolCallId": "t",
            "status": "completed",
            "content": [{"type": "result"}],
            "result": "hi",
        },
    ),
    (
        update("tool_call_update", toolCallId="t", status="completed", content=[SHOWN, SHOWN]),
        {
            "type": "tool_call_completed",
            "toolCallId": "t",
            "status": "completed",
            "content": [SHOWN, SHOWN],
            "result": None,
        },
    ),
    (
        update("tool_call_update", toolCallId="t", status="completed", content=[SHOWN], rawOutput="x"),
        {
            "type": "tool_call_completed",
            "toolCallId": "t",
            "status": "completed",
            "content": [SHOWN],
            "result": "x",
        },
    ),
    (
        update(
            "tool_call_update",
            toolCallId="t",
            content=[{"type": "terminal", "terminalId": "t"}],
            _meta={"terminal_output": {"terminal_id": "t", "data": "more"}},
        ),
        {"type": "terminal_output", "toolCallId": "t", "terminalId": "t", "output": "more"},
    ),
    (
        update(
            "tool_call_update",
            toolCallId="t",
            status="completed",
            _meta={"terminal_output_delta": "end", "terminal_exit": {"exit_code": 3, "signal": None}},
        ),
        {
            "type": "tool_call_completed",
            "toolCallId": "t",
            "status": "completed",
            "terminal": {
                "terminalId": "t",
                "output": "end",
                "exitStatus": {"exitCode": 3, "signal": None},
            },
            "result": None,
        },
    ),
    (update("plan", entries=[{"content": "a"}]), {"type": "plan_created", "entries": [{"content": "a"}]}),
    (update("current_mode_update", currentModeId="code"), {"type": "mode_changed", "modeId": "code"}),
    (update("current_model_update", currentModelId="big"), {"type": "model_changed", "modelId": "big"}),
    (update("config_option_update", configOptions=[]), {"type": "config_options", "options": []}),
    (
        update("available_commands_update", availableCommands=[]),
        {"type": "commands_available", "commands": []},
    ),
    (update("usage_update", used=1, size=2, seq=9), {"type": "usage", "used": 1, "size": 2}),
    (update("session_info_update", title="T"), {"type": "session_info", "title": "T"}),
    (
        update("session_info_update", _meta={"dragoman": {"state": "idle", "stopReason": "end_turn"}}),
        {"type": "session_info", "state": "idle", "stopReason": "end_turn"},
    ),
    (
        update("session_info_update", _meta={"dragoman": {"state": "interrupted", "reason": "restart"}}),
        {"type": "session_info", "reason": "restart"},
    ),
    (update("notice", title="N"), {"type": "notice", "title": "N", "severity": "info"}),
    (
        update("compaction_update", x=1),
        {"type": "unknown_update", "raw": {"sessionUpdate": "compaction_update", "x": 1}},
    ),
]

RECORDS: list[tuple[Json, Json]] = [
    (
        record("question", id="q", toolCall=CALL, options=[]),
        {"type": "permission_request", "requestId": "q", "toolCall": CALL, "options": []},
    ),
    (
        record("question", state="cancelled", by="restart"),
        {
            "type": "permission_resolved",
            "requestId": None,
            "outcome": {"outcome": "cancelled"},
            "by": "restart",
        },
    ),
    (
        record("decision", id="q", by="user", client="zed", outcome={"outcome": "selected", "optionId": "y"}),
        {
            "type": "permission_resolved",
            "requestId": "q",
            "outcome": {"outcome": "selected", "optionId": "y"},
            "by": "user",
            "client": "zed",
        },
    ),
    (
        record("elicitation", id="e", mode="url", message="Log in", url="https://x"),
        {
            "type": "elicitation_request",
            "requestId": "e",
            "mode": "url",
            "message": "Log in",
            "url": "https://x",
        },
    ),
    (
        record("elicitation_decision", id="e", action="accept", by="user"),
        {"type": "elicitation_resolved", "requestId": "e", "action": "accept", "by": "user"},
    ),
    (
        record("terminal_output", terminalId="t", output="o", exitStatus={"exitCode": 0}),
        {"type": "terminal_output", "terminalId": "t", "output": "o", "exitStatus": {"exitCode": 0}},
    ),
    (
        record("terminal_created", terminalId="t"),
        {"type": "terminal_output", "terminalId": "t", "output": ""},
    ),
    (
        record("setting", method="session/set_mode", modeId="code"),
        {"type": "setting_chosen", "name": "mode", "value": "code"},
    ),
    (
        record("setting", method="session/set_config_option", configId="x", value=True),
        {"type": "setting_chosen", "name": "x", "value": True},
    ),
    (
        record("setting", method="session/set_model", modelId="big"),
        {"type": "model_changed", "modelId": "big"},
    ),
    (record("turn_ended", stopReason="end_turn"), {"type": "turn_complete", "stopReason": "end_turn"}),
    (
        record(
            "turn_ended", error={"code": -32603, "message": "Internal error: no", "data": {"reason": "x"}}
        ),
        {"type": "turn_complete", "stopReason": None, "error": {"code": "x", "message": "no"}},
    ),
    (
        record("agent_exited", message="gone", expected=False),
        {"type": "agent_exited", "message": "gone", "expected": False},
    ),
    (record("revived", rung="load"), {"type": "agent_revived", "rung": "load"}),
    (record("parked"), {"type": "session_parked"}),
    (
        record("rewound", message=2, undone=[[5, 9], "x", [1], [2, "b"]], former=[], by="local"),
        {"type": "conversation_rewound", "undone": [[5, 9]], "by": "local", "message": 2},
    ),
    (
        record("rewound", undo=True, undone=[], by="local"),
        {"type": "conversation_rewound", "undone": [], "by": "local", "undo": True},
    ),
    (
        record("notice", title="N", severity="error"),
        {"type": "notice", "title": "N", "severity": "error"},
    ),
    (record("queue", queue=[]), {"type": "queue_changed", "queue": []}),
    (record("offered", modes=MODES), {"type": "session_info", "modes": MODES}),
    (record("offered", modes={"a": 1}), {"type": "session_info"}),
    (record("tomorrow", x=1), {"type": "unknown_update", "raw": {"dragoman": "tomorrow", "x": 1}}),
]


@pytest.mark.parametrize(("made", "expected"), [*UPDATES, *RECORDS])
def test_each_kind_has_its_event(made: Json, expected: Json) -> None:
    assert made == expected


@given(OBJECTS, st.sampled_from(["tool_call", "tool_call_update", "plan", "usage_update", "x", ""]))
def test_no_update_is_too_odd(fields: Json, kind: str) -> None:
    line = json.dumps({"method": "session/update", "params": {"update": {**fields, "sessionUpdate": kind}}})
    assert isinstance(shown(b"u" + line.encode())["type"], str)


def test_what_cannot_be_read_travels_on_unread() -> None:
    line = update_line("dgm_1", {"sessionUpdate": "x", "n": 1}).replace(b'"n":1', b'"n":1e400')
    made = translate("dgm_1", 1, "now", b"U" + line)
    assert b"1e400" in made
    assert b'"unknown_update"' in made


def test_a_notification_that_is_no_update_is_shown_as_it_is() -> None:
    made = shown(b'u{"jsonrpc":"2.0","method":"_x/y","params":{"sessionId":"x"}}')
    assert (made["type"], made["raw"]["method"]) == ("unknown_update", "_x/y")


def test_times_are_iso_8601() -> None:
    assert timestamp(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"
