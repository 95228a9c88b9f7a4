"""MCP servers reach the agent in the shape that v1 has (D-31)."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.gateway.access.capabilities import AgentCapabilities
from dragoman.gateway.lifecycle.mcp_servers import mcp_servers
from dragoman.wire.errors import RpcError


def agent(**mcp: Any) -> AgentCapabilities:
    return AgentCapabilities({"agentCapabilities": {"mcpCapabilities": mcp}})


def read(*servers: Any, capabilities: AgentCapabilities | None = None) -> list[dict[str, Any]]:
    return mcp_servers(list(servers), capabilities or agent(http=True, sse=True), "x")


STDIO = {"name": "s", "command": "/bin/s", "args": ["-v"], "env": [{"name": "A", "value": "b"}]}
HTTP = {"type": "http", "name": "h", "url": "https://h", "headers": [{"name": "A", "value": "b"}]}


@pytest.mark.parametrize(
    "server",
    [
        STDIO,
        {**STDIO, "_meta": {"k": None}, "future": 1},
        HTTP,
        {**HTTP, "type": "sse"},
        {"type": "acp", "name": "a", "serverId": "1"},
        {"type": "brand_new"},
    ],
)
def test_a_v1_server_passes_as_it_is(server: dict[str, Any]) -> None:
    assert read(server) == [server]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({**STDIO, "type": "stdio"}, STDIO),
        ({"name": "s", "command": "c"}, {"name": "s", "command": "c", "args": [], "env": []}),
        (
            {"name": "s", "command": "c", "args": None, "env": None},
            {"name": "s", "command": "c", "args": [], "env": []},
        ),
        (
            {"name": "s", "command": "c", "args": [], "env": {"A": "b", "N": 1}},
            {
                "name": "s",
                "command": "c",
                "args": [],
                "env": [{"name": "A", "value": "b"}, {"name": "N", "value": "1"}],
            },
        ),
        ({"type": "http", "name": "h", "url": "u"}, {"type": "http", "name": "h", "url": "u", "headers": []}),
        (
            {"type": "sse", "name": "h", "url": "u", "headers": {"A": "b"}},
            {"type": "sse", "name": "h", "url": "u", "headers": [{"name": "A", "value": "b"}]},
        ),
    ],
)
def test_a_dialect_becomes_v1(old: dict[str, Any], new: dict[str, Any]) -> None:
    before = dict(old)
    assert read(old) == [new]
    assert old == before


@pytest.mark.rule("G-052")
def test_a_missing_list_is_an_empty_one() -> None:
    assert mcp_servers(None, agent(), "x") == []
    assert mcp_servers([], agent(), "x") == []


@pytest.mark.parametrize("kind", ["http", "sse"])
@pytest.mark.parametrize("value", [False, None, "true", {}])
@pytest.mark.rule("G-035")
def test_a_server_that_the_agent_cannot_reach_is_named(kind: str, value: Any) -> None:
    with pytest.raises(RpcError) as caught:
        read(STDIO, {**HTTP, "type": kind}, capabilities=agent(**{"http": True, "sse": True, kind: value}))
    assert caught.value.code == -32602
    assert caught.value.data == {
        "reason": "mcpServers",
        "server": "h",
        "capability": f"mcpCapabilities.{kind}",
    }


@pytest.mark.parametrize(
    "value", ["x", {}, 1, [1], [None], [[]], [{"name": "s"}], [{"command": ""}], [{"command": 1}]]
)
def test_what_makes_no_sense_is_refused(value: Any) -> None:
    with pytest.raises(RpcError) as caught:
        mcp_servers(value, agent(), "x")
    assert caught.value.code == -32602
    assert caught.value.data["reason"] == "mcpServers"


def test_a_nameless_server_is_called_by_its_number() -> None:
    with pytest.raises(RpcError, match="number 1"):
        read(STDIO, {"args": []})


REMOTE = {"type": "sse", "name": "h", "url": "https://h", "headers": []}


@pytest.mark.parametrize(
    ("server", "field"),
    [
        ({"name": "s", "args": [], "env": []}, ".command"),
        ({**STDIO, "command": ["npx"]}, ".command"),
        ({**STDIO, "command": " "}, ".command"),
        ({**STDIO, "command": "a\0b"}, ".command"),
        ({**STDIO, "name": None}, ".name"),
        ({**STDIO, "name": 5}, ".name"),
        ({**STDIO, "type": 5}, ".type"),
        ({**STDIO, "args": "-v"}, ".args"),
        ({**STDIO, "args": ["-v", 1]}, ".args[1]"),
        ({**STDIO, "env": "A=b"}, ".env"),
        ({**STDIO, "env": ["A=b"]}, ".env[0]"),
        ({**STDIO, "env": [{"name": "A", "value": "b"}, {"value": "b"}]}, ".env[1].name"),
        ({**STDIO, "env": [{"name": "A=B", "value": "b"}]}, ".env[0].name"),
        ({**STDIO, "env": [{"name": "A"}]}, ".env[0].value"),
        ({**STDIO, "env": [{"name": "A", "value": 1}]}, ".env[0].value"),
        ({**STDIO, "env": {"A": {}}}, ".env.A"),
        ({**STDIO, "env": {"A": True}}, ".env.A"),
        ({**STDIO, "env": {"A=B": "b"}}, ".env.A=B"),
        ({**STDIO, "env": {" ": "b"}}, ".env. "),
        ({**STDIO, "env": {"A": "a\0"}}, ".env.A"),
        ({"type": "http", "name": "h", "headers": []}, ".url"),
        ({**REMOTE, "url": ""}, ".url"),
        ({**REMOTE, "url": 1}, ".url"),
        ({**REMOTE, "name": ""}, ".name"),
        ({**REMOTE, "headers": 1}, ".headers"),
        ({**REMOTE, "headers": [None]}, ".headers[0]"),
        ({**REMOTE, "headers": {"A: b": "c"}}, ".headers.A: b"),
        ({**REMOTE, "headers": {"": "c"}}, ".headers."),
        ({**REMOTE, "headers": [{"name": "A", "value": None}]}, ".headers[0].value"),
        ({**REMOTE, "headers": [{"name": "", "value": "b"}]}, ".headers[0].name"),
        ({**REMOTE, "headers": [{"name": "A", "value": "b\r\nC: d"}]}, ".headers[0].value"),
        ("x", ""),
    ],
)
def test_the_member_that_is_wrong_is_named(server: Any, field: str) -> None:
    with pytest.raises(RpcError) as caught:
        read(STDIO, server)
    assert caught.value.code == -32602
    assert caught.value.data["field"] == f"mcpServers[1]{field}"
    assert f"mcpServers[1]{field} " in caught.value.message
