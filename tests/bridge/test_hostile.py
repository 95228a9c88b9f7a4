"""Whatever an agent sends, what the bridge emits has the documented types (`web/src/bridge/events.ts`)."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoman.bridge.events import shapes
from dragoman.bridge.events.records import RECORDS
from dragoman.bridge.events.translate import UPDATES, translate
from dragoman.gateway.delivery import events
from dragoman.gateway.rewriting.updates import update_line
from support.clients.bridge_event_types import (
    Command,
    ConfigOption,
    Entry,
    Modes,
    check_event,
    check_snapshot,
)
from support.clients.bridge_page import Page
from support.json_values import OBJECTS, VALUES
from support.serve_process import ServeProcess

Json = dict[str, Any]


# -- what an agent may send

ODD: st.SearchStrategy[Any] = (
    st.sampled_from(
        [
            None, 7, True, "", [], {}, [None], [[]], [7], {"type": 7}, {"type": "text"}, {"type": "text", "text": {}},
            [{"type": "terminal"}], [{"type": "diff", "path": 7}], {"type": "image"}, {"type": "resource"},
            {"type": "resource", "resource": {"uri": 7, "text": []}}, {"amount": "x", "currency": {}},
            [{"optionId": {}}], [{"optionId": 7}], {"toolCallId": None}, [{"content": {}}], ["step"], [{"id": {}}],
            [{"id": "o", "options": [None, {"value": 7}, {"options": {}}]}], {"availableModes": [None, {"id": 7}]},
            [{"name": "c", "input": 7}], [{"path": 7, "line": "x"}, {"path": []}], {"exit_code": "x", "signal": 7},
            {"outcome": "selected"}, {"outcome": {}}, [{"clientMessageId": {}, "content": [None]}],
        ]
    )
    | VALUES
)  # fmt: skip
FIELDS = (
    "content", "messageId", "toolCallId", "title", "kind", "status", "locations", "rawInput", "rawOutput", "entries",
    "currentModeId", "currentModelId", "configOptions", "availableCommands", "used", "size", "cost", "modes", "state",
    "severity", "toolName", "updatedAt",
)  # fmt: skip
META = st.fixed_dictionaries(
    {},
    optional={
        name: ODD | st.fixed_dictionaries({}, optional={"terminal_id": ODD, "data": ODD, "exit_code": ODD})
        for name in ("terminal_output", "terminal_output_delta", "terminal_exit", "dragoman", "claudeCode")
    },
)
SENT = st.builds(
    lambda fields, named: {**named, **fields},
    st.dictionaries(st.sampled_from(FIELDS), ODD, max_size=6),
    st.fixed_dictionaries({}, optional={"toolCallId": st.just("t"), "_meta": META | ODD}),
)
KEPT = (
    "id", "state", "by", "toolCall", "options", "outcome", "client", "mode", "message", "requestedSchema", "url",
    "action", "terminalId", "output", "exitStatus", "truncated", "method", "modeId", "modelId", "configId", "value",
    "stopReason", "error", "expected", "rung", "title", "severity", "events", "queue", "modes", "configOptions",
)  # fmt: skip
RECORDED = st.dictionaries(st.sampled_from(KEPT), ODD, max_size=6)


def check(event: bytes) -> Json:
    made: Json = json.loads(translate("s", 7, "now", event))
    assert (made["sessionId"], made["seq"], made["timestamp"]) == ("s", 7, "now")
    check_event(made)
    return made


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Any:
    """A bug of ours would be told in the log."""
    with caplog.at_level(logging.ERROR):
        yield
    assert caplog.text == ""


@pytest.mark.parametrize("kind", [*UPDATES, "something_new"])
def test_whatever_an_update_holds_the_event_has_its_documented_types(kind: str, quiet: None) -> None:
    @settings(max_examples=25)
    @given(SENT, OBJECTS)
    @example({"entries": [None]}, {})
    @example({"title": {}, "toolCallId": "t"}, {})
    @example({"content": 7, "toolCallId": "t", "status": "completed"}, {})
    def try_it(fields: Json, more: Json) -> None:
        update = {**more, **fields, "sessionUpdate": kind}
        for tag in (b"U", events.PROMPT):
            check(tag + update_line("s", update))

    try_it()


@pytest.mark.parametrize("kind", [*RECORDS, "something_new"])
def test_whatever_a_record_holds_the_event_has_its_documented_types(kind: str, quiet: None) -> None:
    @settings(max_examples=25)
    @given(RECORDED, OBJECTS)
    def try_it(facts: Json, more: Json) -> None:
        check(events.record(kind, **{**more, **facts, "dragoman": kind}))

    try_it()


@settings(max_examples=50)
@given(ODD, ODD, ODD, ODD)
def test_a_snapshot_has_its_documented_types(modes: Any, options: Any, commands: Any, plan: Any) -> None:
    made = shapes.modes(modes)
    if made is not None:
        msgspec.convert(made, Modes, strict=True)
    msgspec.convert(shapes.options(options), list[ConfigOption], strict=True)
    msgspec.convert(shapes.commands(commands), list[Command], strict=True)
    msgspec.convert(shapes.plan(plan), list[Entry], strict=True)


def sent(kind: str, /, **fields: object) -> Json:
    made = check(b"U" + update_line("s", {"sessionUpdate": kind, **fields}))
    return {name: made[name] for name in made if name not in ("sessionId", "seq", "timestamp")}


def test_what_can_be_read_is_shown_beside_what_cannot() -> None:
    assert sent("plan", entries=[None, {"content": "a", "status": 7}, "b", {"content": {"x": 1}}]) == {
        "type": "plan_created",
        "entries": [{"content": "a"}, {"content": "b"}, {"content": '{"x":1}'}],
    }
    assert sent("tool_call", toolCallId="t", title={"x": 1}, content=5, locations=[None, {"path": "/a"}]) == {
        "type": "tool_call_started",
        "toolCallId": "t",
        "title": '{"x":1}',
        "kind": "other",
        "toolName": "tool",
        "arguments": {},
        "content": [{"type": "content", "content": {"type": "text", "text": "5"}}],
        "locations": [{"path": "/a"}],
    }
    assert sent("agent_message_chunk", content=5) == {"type": "message_chunk", "content": "5"}
    assert sent("agent_message_chunk", content={"type": "text", "text": ["a"]})["content"] == '["a"]'
    assert sent("usage_update", used="x", size=5, cost={"amount": 1, "currency": 7.5}) == {
        "type": "usage",
        "size": 5,
    }


def test_an_update_that_does_not_say_what_it_is_about_is_unknown() -> None:
    for kind in ("tool_call", "tool_call_update", "current_mode_update", "current_model_update"):
        assert sent(kind, title="x")["type"] == "unknown_update"


def test_a_question_is_asked_whatever_it_is_about() -> None:
    asked = check(events.record("question", id="q", toolCall=7, options=[None, {"optionId": "y"}]))
    assert asked["toolCall"] == {"toolCallId": ""}
    assert asked["options"] == [{"optionId": "y", "name": "y", "kind": "other"}]


NAMES = ("constructor", "__proto__", "toString")
"""What every object has in the language of the page."""
BLOCKS: list[object] = [
    None, [], {}, {"type": None}, *({"type": name} for name in NAMES), {"type": "text", "text": "\0 \u202e"},
    {"type": "image", "data": "AAAA", "mimeType": "image/png"}, {"type": "image", "data": "", "mimeType": "text/html"},
    {"type": "audio", "data": "", "mimeType": "audio/none"}, {"type": "resource_link", "uri": "javascript:alert(1)"},
    {"type": "resource_link", "uri": "file:///%E0%A4%A", "name": {}, "size": -1}, {"type": "resource", "resource": None},
    {"type": "resource", "resource": {"uri": "%", "text": 7}},
    {"type": "resource", "resource": {"uri": "http://[", "blob": "%"}},
]  # fmt: skip
INPUTS: list[object] = [
    None, 7, "", [], [None], {"command": {}}, {"command": [None, 7]}, {"command": ""}, {"file_path": 7}, {"path": None},
    {"old_string": 7, "new_string": {}}, {"content": []}, {"url": "http://["},
    dict.fromkeys(NAMES, 1), {"a": [[[[[[]]]]]]}, {"toString": 7, "valueOf": None},
    json.loads('{"exit_code":' * 60 + "3" + "}" * 60),
]  # fmt: skip
STRANGE: list[Json] = [
    *({"sessionUpdate": "agent_message_chunk", "content": content} for content in BLOCKS),
    *({"sessionUpdate": "user_message_chunk", "content": content} for content in BLOCKS),
    *(
        {
            "sessionUpdate": "tool_call",
            "toolCallId": f"b{number}",
            "title": "",
            "content": [{"type": "content", "content": content}, content],
        }
        for number, content in enumerate(BLOCKS)
    ),
    *(
        {"sessionUpdate": "tool_call", "toolCallId": name, "title": name, "kind": name, "status": name}
        for name in NAMES
    ),
    *(
        {
            "sessionUpdate": "tool_call",
            "toolCallId": f"i{number}",
            "title": "t",
            "kind": kind,
            "rawInput": told,
            "rawOutput": told,
        }
        for number, (kind, told) in enumerate(
            (kind, told) for kind in ("execute", "edit", "read") for told in INPUTS
        )
    ),
    {
        "sessionUpdate": "tool_call",
        "toolCallId": "c",
        "title": "\u2066",
        "status": "completed",
        "content": [
            {"type": "diff", "path": "", "oldText": {}, "newText": None},
            {"type": "diff", "path": "/a", "oldText": "a\r", "newText": "b\u2028"},
            *({"type": "terminal", "terminalId": name} for name in (*NAMES, "gone", "")),
            *({"type": name} for name in NAMES),
        ],
        "locations": [{"path": ""}, {"path": "/a", "line": -1}, {"path": "/b", "line": 1e300}],
        "_meta": 7,
    },
    {"sessionUpdate": "tool_call_update", "toolCallId": "c", "content": None, "title": None, "status": None},
    *(
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": f"i{number}",
            "status": "completed",
            "content": [{"type": "content", "content": {"type": "text", "text": "done"}}],
            "rawOutput": told,
        }
        for number, told in enumerate(INPUTS)
    ),
    {"sessionUpdate": "tool_call_update", "toolCallId": "never told", "status": "completed"},
    {"sessionUpdate": "usage_update", "used": 1e308, "size": 0},
    {"sessionUpdate": "usage_update", "used": -1, "size": -5},
    {"sessionUpdate": "usage_update", "used": 10**30, "size": 1e-300},
    *(
        {"sessionUpdate": "usage_update", "used": 1, "cost": {"amount": 1e308, "currency": name}}
        for name in (*NAMES, "", "usd", "\0")
    ),
    {"sessionUpdate": "session_info_update", "title": "\u202e\0" + "t" * 10_000, "updatedAt": "never"},
    {"sessionUpdate": "session_info_update", "title": ["a"], "updatedAt": 7},
    {
        "sessionUpdate": "config_option_update",
        "configOptions": [
            *(
                {"id": name, "type": name, "name": name, "category": name, "currentValue": name}
                for name in NAMES
            ),
            {
                "id": "s",
                "name": "twice",
                "type": "select",
                "currentValue": "not there",
                "options": [
                    {"value": "v", "name": "v"},
                    {"value": "v", "name": "v"},
                    {"group": "g", "options": [{"value": 1}, None]},
                    {"group": "g", "name": {}, "options": 7},
                ],
            },
            {"id": "s", "name": "twice", "type": "select", "currentValue": {}},
            {"id": "b", "type": "boolean", "currentValue": "no"},
        ],
    },
    {
        "sessionUpdate": "available_commands_update",
        "availableCommands": [
            *({"name": name, "description": None, "input": {"hint": {}}} for name in NAMES),
            {"name": ""},
            {"name": "go"},
            {"name": "go"},
        ],
    },
    {"sessionUpdate": "plan", "entries": {"content": "a"}},
    {
        "sessionUpdate": "plan",
        "entries": [
            *({"content": name, "status": name, "priority": name} for name in NAMES),
            {"content": "a step"},
            {"content": "a step"},
        ],
    },
]
"""Values of the right types that no program expects, and of others deeper inside."""
HOSTILE: list[Json] = [
    {"sessionUpdate": "plan", "entries": [None]},
    {"sessionUpdate": "plan", "entries": [None, {"content": "a step", "status": {}}]},
    {"sessionUpdate": "session_info_update", "title": {"a": 1}},
    {"sessionUpdate": "agent_message_chunk", "content": 7},
    {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": None}},
    {"sessionUpdate": "user_message_chunk", "content": [None]},
    {"sessionUpdate": "tool_call", "toolCallId": "h", "title": {"a": 1}, "content": 7, "locations": [None]},
    {"sessionUpdate": "tool_call_update", "toolCallId": "h", "kind": [], "content": [None, {"type": "diff"}]},
    {"sessionUpdate": "tool_call", "title": "no id"},
    {"sessionUpdate": "usage_update", "used": "many", "cost": {"amount": 1.5, "currency": "florins"}},
    {"sessionUpdate": "usage_update", "used": 7, "size": 70, "cost": {"amount": {}, "currency": None}},
    {"sessionUpdate": "available_commands_update", "availableCommands": [None, {"name": {}}, {"name": "go"}]},
    {"sessionUpdate": "config_option_update", "configOptions": [None, {"id": 7}, {"id": "o", "options": 7}]},
    {"sessionUpdate": "current_mode_update", "currentModeId": {"a": 1}},
    {"sessionUpdate": {}, "content": 7},
]
"""What emptied the page for good, and its siblings."""


async def test_an_agent_that_sends_nonsense_is_shown_in_documented_types(
    page: Page, serving: ServeProcess, workspace: Path
) -> None:
    session = await page.new_session(workspace)
    script = "\n".join(
        [*(f"update {json.dumps(update)}" for update in (*STRANGE, *HOSTILE)), "say still here"]
    )
    turn = await page.turn(session, script)
    assert "still here" in page.text(session)
    question = json.dumps(
        {"sessionId": "{sid}", "toolCall": {"toolCallId": {}, "title": 7}, "options": [None]}
    )
    page.send(
        "send_message", sessionId=session, content=f"request-nowait session/request_permission {question}"
    )
    again = await Page.open(serving)
    await page.next("permission_request")
    loaded = (await again.load(session))["session"]
    for event in [*turn, *again.numbered(session)]:
        check_event(event)
    check_snapshot(loaded)
    assert [entry["content"] for entry in loaded["plan"]] == ["a step"]
    assert [command["name"] for command in loaded["commands"]] == ["go"]
