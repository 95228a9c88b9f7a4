"""Prompts and MCP servers in Claude's words."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.agents.claude import prompt

PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"type": "text", "text": "hi"}, {"type": "text", "text": "hi"}),
        ({"type": "image", "mimeType": "image/png", "data": "AA=="}, PNG),
        (
            {"type": "resource_link", "uri": "file:///w/a.py", "name": "a.py"},
            {"type": "text", "text": "[@a.py](file:///w/a.py)"},
        ),
        (
            {"type": "resource", "resource": {"uri": "file:///a", "text": "x"}},
            {"type": "text", "text": '<context ref="file:///a">\nx\n</context>'},
        ),
        ({"type": "resource", "resource": {"uri": "a", "mimeType": "image/png", "blob": "AA=="}}, PNG),
    ],
)
def test_blocks(block: dict[str, Any], expected: dict[str, Any]) -> None:
    line = prompt.user_line("s", [block])
    assert line["type"] == "user"
    assert line["message"] == {"role": "user", "content": [expected]}


def test_mcp_servers_of_every_transport() -> None:
    servers = [
        {"name": "a", "command": "run", "args": ["-x"], "env": [{"name": "K", "value": "V"}]},
        {"type": "http", "name": "b", "url": "http://b", "headers": [{"name": "H", "value": "1"}]},
        {"type": "sse", "name": "c", "url": "http://c", "headers": []},
        {"type": "novel", "name": "d"},
    ]
    assert prompt.mcp_servers(servers) == {
        "a": {"type": "stdio", "command": "run", "args": ["-x"], "env": {"K": "V"}},
        "b": {"type": "http", "url": "http://b", "headers": {"H": "1"}},
        "c": {"type": "sse", "url": "http://c", "headers": {}},
    }
