"""Updates of an agent in a box leave it with host paths, and untouched where they have none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.gateway.path_mapping.mapped_peer import MappedRewriter, update_params
from dragoman.gateway.path_mapping.paths import PathMap

PATHS = PathMap([("/home/ada/project", "/workspace")])


def rewriter() -> MappedRewriter:
    return MappedRewriter("agent-1", "dgm_1", lambda update: False, PATHS)


def line(update: dict[str, Any], **more: Any) -> bytes:
    params = {"sessionId": "agent-1", "update": update, **more}
    message = {"jsonrpc": "2.0", "method": "session/update", "params": params}
    return json.dumps(message, separators=(",", ":")).encode()


def chunk(content: dict[str, Any]) -> dict[str, Any]:
    return {"sessionUpdate": "agent_message_chunk", "content": content}


def test_text_is_spliced_without_being_read() -> None:
    said = line(chunk({"type": "text", "text": "file:///workspace/a is /workspace/a"}))
    assert rewriter().splice(said) == said.replace(b"agent-1", b"dgm_1")
    odd = said.replace(
        b'"}}', b'","n":1e400,"t":"\\u0061"}}'
    )  # no number for Python: whoever decodes it fails
    assert rewriter().splice(odd) == odd.replace(b"agent-1", b"dgm_1")


@pytest.mark.rule("G-151")
def test_a_linked_file_gets_its_host_path() -> None:
    said = line(chunk({"type": "resource_link", "name": "a", "uri": "file:///workspace/a%20b"}))
    shown = json.loads(rewriter().splice(said))["params"]
    assert shown["sessionId"] == "dgm_1"
    assert shown["update"]["content"]["uri"] == "file:///home/ada/project/a%20b"


@pytest.mark.rule("G-151")
def test_the_order_of_members_does_not_matter() -> None:
    content = {"resource": {"text": "x", "uri": "file:///workspace/a"}, "type": "resource"}
    said = line({"content": content, "sessionUpdate": "agent_thought_chunk"}, _meta={"a": 1})
    shown = json.loads(rewriter().splice(said))["params"]
    assert shown["update"]["content"]["resource"]["uri"] == "file:///home/ada/project/a"
    assert shown["_meta"] == {"a": 1}


@pytest.mark.rule("G-151")
def test_a_tool_call_gets_host_paths_before_anybody_sees_it() -> None:
    seen: list[dict[str, Any]] = []

    def see(update: dict[str, Any]) -> bool:
        seen.append(update)
        return False

    said = line({"sessionUpdate": "tool_call", "toolCallId": "1", "locations": [{"path": "/workspace/a"}]})
    (shown,) = MappedRewriter("agent-1", "dgm_1", see, PATHS).rewrite(said)
    wanted = [{"path": "/home/ada/project/a"}]
    assert json.loads(shown)["params"]["update"]["locations"] == wanted
    assert seen[0]["locations"] == wanted


@pytest.mark.parametrize("uri", ["file:/workspace/a", "FILE:///workspace/a", "file://LOCALHOST/workspace/a"])
def test_a_linked_file_is_recognised_in_every_spelling(uri: str) -> None:
    said = line(chunk({"type": "resource_link", "name": "a", "uri": uri}))
    shown = json.loads(rewriter().splice(said))["params"]["update"]["content"]["uri"]
    assert shown == uri.replace("/workspace", "/home/ada/project")


@pytest.mark.parametrize("params", [b"[]", b'{"update":1}', b"{}", b'{"update":{"sessionUpdate":1}}'])
def test_odd_updates_pass(params: bytes) -> None:
    assert update_params(params, PATHS) == params
