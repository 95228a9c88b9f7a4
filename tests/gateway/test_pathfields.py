"""Every field that holds a path is translated; no other is touched."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.gateway.path_mapping import path_fields
from dragoman.gateway.path_mapping.paths import PathMap

HOST, BOX = "/home/ada/project", "/workspace"
MAP = PathMap([(HOST, BOX)])
OUT_OF_BOUNDS = {
    # fields that hold paths in passing, and must stay as they are
    "rawInput": {"path": f"{HOST}/a", "cwd": HOST},
    "rawOutput": [f"{HOST}/a"],
    "title": f"{HOST}/a",
    "_meta": {"path": f"{HOST}/a", "cwd": HOST},
}


def tool(root: str) -> dict[str, Any]:
    return {
        "toolCallId": "1",
        "locations": [{"path": f"{root}/a", "line": 3}, {"path": "/elsewhere"}, {"path": "a"}],
        "content": [
            {"type": "diff", "path": f"{root}/a", "oldText": HOST, "newText": f"{HOST}/a"},
            {"type": "content", "content": {"type": "text", "text": f"{HOST}/a"}},
            {"type": "content", "content": {"type": "resource_link", "name": "a", "uri": f"file://{root}/a"}},
            {
                "type": "content",
                "content": {
                    "type": "resource",
                    "resource": {"uri": f"file://{root}/b%20c", "text": f"{HOST}/a"},
                },
            },
            {"type": "terminal", "terminalId": f"{HOST}/a"},
        ],
        **OUT_OF_BOUNDS,
    }


def setup(root: str) -> dict[str, Any]:
    return {
        "cwd": f"{root}/sub",
        "additionalDirectories": [f"{root}/x", "/elsewhere"],
        "mcpServers": [
            {
                "name": f"{HOST}",
                "command": f"{root}/bin/server",
                "args": [f"{root}/data", "relative", f"--root={HOST}", "-v"],
                "env": [{"name": "ROOT", "value": HOST}],
            },
            {"name": "outside", "command": "/usr/bin/node", "args": [], "env": []},
            {"type": "http", "name": "far", "url": f"http://localhost{HOST}", "headers": []},
        ],
        "_meta": {"cwd": HOST},
    }


def prompt(root: str) -> dict[str, Any]:
    return {
        "sessionId": "1",
        "prompt": [
            {"type": "text", "text": f"look at {HOST}/a, file://{HOST}/a"},
            {"type": "resource_link", "name": "a", "uri": f"file://{root}/a"},
            {"type": "resource", "resource": {"uri": f"file://{root}/a", "text": f"file://{HOST}"}},
        ],
    }


REQUESTS = [
    ("session/new", setup),
    ("session/load", setup),
    ("session/resume", setup),
    ("session/fork", setup),
    ("session/list", lambda root: {"cwd": root, "cursor": HOST}),
    ("session/prompt", prompt),
    ("session/request_permission", lambda root: {"toolCall": tool(root), "options": [{"name": HOST}]}),
    ("fs/read_text_file", lambda root: {"path": f"{root}/a", "line": 1}),
    ("fs/write_text_file", lambda root: {"path": f"{root}/a", "content": HOST}),
    (
        "terminal/create",
        lambda root: {
            "command": f"{HOST}/run",
            "args": [f"{HOST}/a"],
            "cwd": f"{root}/a",
            "env": [{"name": "A", "value": HOST}],
        },
    ),
    ("_custom/method", lambda root: {"cwd": HOST, "path": HOST}),
]
UPDATES = [
    ("tool_call", tool),
    ("tool_call_update", tool),
    ("user_message_chunk", lambda root: {"content": {"type": "resource_link", "uri": f"file://{root}/a"}}),
    (
        "agent_message_chunk",
        lambda root: {"content": {"type": "resource", "resource": {"uri": f"file://{root}/a"}}},
    ),
    ("agent_thought_chunk", lambda root: {"content": {"type": "text", "text": HOST}, "_meta": {"uri": HOST}}),
    ("plan_update", lambda root: {"plan": {"type": "file", "id": HOST, "uri": f"file://{root}/plan.md"}}),
    (
        "compaction_summary_chunk",
        lambda root: {"content": {"type": "resource_link", "uri": f"file:{root}/a"}},
    ),
    ("plan", lambda root: {"entries": [{"content": HOST, "path": HOST}]}),
    ("unheard_of", lambda root: {"path": HOST, "locations": [{"path": HOST}]}),
]


@pytest.mark.rule("G-151")
@pytest.mark.parametrize(("method", "params"), REQUESTS, ids=[name for name, _ in REQUESTS])
def test_the_params_of_a_request_are_translated_both_ways(method: str, params: Any) -> None:
    inside = path_fields.translate_params(method, json.dumps(params(HOST)).encode(), MAP.to_box)
    assert json.loads(inside) == params(BOX)
    outside = path_fields.translate_params(method, json.dumps(params(BOX)).encode(), MAP.to_host)
    assert json.loads(outside) == params(HOST)


@pytest.mark.rule("G-151")
@pytest.mark.parametrize(("kind", "update"), UPDATES, ids=[name for name, _ in UPDATES])
def test_an_update_is_translated(kind: str, update: Any) -> None:
    said = {"sessionUpdate": kind, **update(BOX)}
    assert path_fields.translate_update(said, MAP.to_host) == (update(BOX) != update(HOST))
    assert said == {"sessionUpdate": kind, **update(HOST)}


@pytest.mark.rule("G-151")
def test_the_sessions_of_a_list_are_translated() -> None:
    def listed(root: str) -> Any:
        return {
            "sessions": [
                {"sessionId": HOST, "cwd": root, "additionalDirectories": [f"{root}/x"], "title": HOST}
            ],
            "nextCursor": HOST,
        }

    raw = path_fields.translate_result("session/list", json.dumps(listed(BOX)).encode(), MAP.to_host)
    assert json.loads(raw) == listed(HOST)


@pytest.mark.parametrize(
    "params",
    [
        {"cwd": 1, "additionalDirectories": "x", "mcpServers": {"a": 1}},
        {
            "cwd": None,
            "additionalDirectories": [None, 1],
            "mcpServers": [None, {"args": None, "command": {}}],
        },
        {},
        [],
        None,
        "x",
    ],
)
def test_odd_shapes_pass_unchanged(params: Any) -> None:
    raw = json.dumps(params).encode()
    assert path_fields.translate_params("session/new", raw, MAP.to_box) is raw


def test_a_message_without_a_mapped_path_keeps_every_byte() -> None:
    raw = b'{ "cwd": "/elsewhere",  "big": 123456789012345678901234567890, "x": null }'
    assert path_fields.translate_params("session/new", raw, MAP.to_box) is raw


OTHER_REQUESTS = [
    ("document/didOpen", lambda root: {"uri": f"file:{root}/a", "text": HOST}),
    ("document/didFocus", lambda root: {"uri": f"file://{root}/a"}),
    (
        "nes/start",
        lambda root: {
            "workspaceUri": f"file://{root}",
            "workspaceFolders": [{"uri": f"file://{root}/x", "name": HOST}],
        },
    ),
    (
        "nes/suggest",
        lambda root: {
            "uri": f"file://{root}/a",
            "context": {"openFiles": [{"uri": f"file://{root}/b", "text": HOST}]},
        },
    ),
    (
        "elicitation/create",
        lambda root: {
            "message": f"Which, {HOST}/a?",
            "requestedSchema": {
                "properties": {
                    "file": {"type": "string", "enum": [f"{root}/a", "none"], "default": f"{root}/a"},
                    "other": {
                        "type": "array",
                        "items": {"anyOf": [{"const": f"file://{root}/b", "title": f"in {HOST}"}]},
                    },
                }
            },
        },
    ),
    (
        "session/request_permission",
        lambda root: {
            "toolCall": {
                "content": [{"type": "resource_link", "uri": f"file://{root}/a"}],
                "toolCall": {"locations": [{"path": f"{root}/b"}], "rawInput": {"path": HOST}},
            }
        },
    ),
    (
        "session/prompt",
        lambda root: {"prompt": [{"type": "resource_link", "uri": f"{root}/a", "name": HOST}]},
    ),
    ("fs/read_text_file", lambda root: {"path": f"file://LOCALHOST{root}/a"}),
]


@pytest.mark.parametrize(("method", "params"), OTHER_REQUESTS, ids=[name for name, _ in OTHER_REQUESTS])
def test_what_is_new_in_the_protocol_or_odd_is_translated_both_ways(method: str, params: Any) -> None:
    inside = path_fields.translate_params(method, json.dumps(params(HOST)).encode(), MAP.to_box)
    assert json.loads(inside) == params(BOX)
    outside = path_fields.translate_params(method, json.dumps(params(BOX)).encode(), MAP.to_host)
    if "enum" not in json.dumps(params(HOST)):  # whole values that are ours stay theirs
        assert json.loads(outside) == params(HOST)


def test_answers_are_translated_in_both_directions() -> None:
    def chosen(root: str) -> Any:
        return {"action": "accept", "content": {"file": f"{root}/a", "note": f"see {HOST}/a", "count": 3}}

    raw = path_fields.translate_result("elicitation/create", json.dumps(chosen(HOST)).encode(), MAP.to_box)
    assert json.loads(raw) == chosen(BOX)
    suggested = json.dumps({"suggestions": [{"kind": "edit", "uri": f"file://{BOX}/a"}]}).encode()
    raw = path_fields.translate_result("nes/suggest", suggested, MAP.to_host)
    assert json.loads(raw) == {"suggestions": [{"kind": "edit", "uri": f"file://{HOST}/a"}]}
    for odd in (b"null", b"[]", b'{"action":"cancel"}', b'{"content":null}'):
        assert path_fields.translate_result("elicitation/create", odd, MAP.to_box) is odd


def test_an_errors_message_and_data_are_translated() -> None:
    def failure(root: str) -> Any:
        return {
            "code": -32002,
            "message": f"File not found: {root}/a b",
            "data": {
                "uri": f"file://{root}/a%20b",
                "paths": [f"{root}/a", {"deep": f"'{root}'"}],
                root: 1,
                "n": None,
            },
            "unknown": f"{HOST}/x",
        }

    raw = path_fields.translate_error(json.dumps(failure(HOST)).encode(), MAP.to_box)
    assert json.loads(raw) == failure(BOX)
    raw = path_fields.translate_error(json.dumps(failure(BOX)).encode(), MAP.to_host)
    assert json.loads(raw) == failure(HOST)


@pytest.mark.parametrize(
    "error",
    [
        b'{"code":1,"message":"x","data":null,"big":12345678901234567890123}',
        b"[]",
        b"{}",
        b'{"message":1e400}',
    ],
)
def test_an_error_without_a_path_keeps_every_byte(error: bytes) -> None:
    assert path_fields.translate_error(error, MAP.to_box) is error


def test_a_huge_error_is_shortened_on_its_way_into_a_box() -> None:
    huge = json.dumps({"code": -7, "message": f"{HOST}/a" + "x" * 10_000_000, "data": HOST}).encode()
    told = json.loads(path_fields.translate_error(path_fields.shortened(huge), MAP.to_box))
    assert told["code"] == -7
    assert told["message"].startswith(f"{BOX}/a")
    assert HOST not in json.dumps(told)
    assert path_fields.translate_error(huge, MAP.to_host) is huge


def test_a_prompt_without_a_file_uri_is_not_even_decoded() -> None:
    raw = b'{"prompt": this is not JSON /home/ada/project'
    assert path_fields.translate_params("session/prompt", raw, MAP.to_box) is raw
