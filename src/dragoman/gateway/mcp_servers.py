"""The client's MCP servers in the shape that the agent accepts (D-31, G-035)."""

from __future__ import annotations

from typing import Any

from dragoman.gateway.capabilities import AgentCapabilities
from dragoman.gateway.json_types import JsonObject
from dragoman.wire.errors import invalid_params

REMOTE = ("http", "sse")


def mcp_servers(value: object, agent: AgentCapabilities, agent_name: str) -> list[JsonObject]:
    """Missing or null counts as none; a server that the agent cannot reach is named in the error."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise invalid_params("mcpServers must be a list", "mcpServers")
    return [_server(entry, index, agent, agent_name) for index, entry in enumerate(value)]


def _server(entry: object, index: int, agent: AgentCapabilities, agent_name: str) -> JsonObject:
    if not isinstance(entry, dict):
        raise invalid_params(f"mcpServers[{index}] must be an object", "mcpServers")
    server = dict(entry)
    name = server.get("name") or f"number {index}"
    kind = server.get("type")
    if kind in REMOTE:
        if not agent.mcp(kind):
            raise invalid_params(
                f"The agent {agent_name} cannot use the MCP server {name}: it does not support {kind} servers",
                "mcpServers",
                server=name,
                capability=f"mcpCapabilities.{kind}",
            )
        server["headers"] = _pairs(server.get("headers"))
        return server
    if kind in (None, "stdio"):
        return _stdio(server, name)
    return server  # an unknown transport is the agent's to judge


def _stdio(server: JsonObject, name: object) -> JsonObject:
    server.pop("type", None)  # v1 has no type on stdio servers
    if not isinstance(server.get("command"), str) or not server["command"]:
        raise invalid_params(f"The MCP server {name} has no command", "mcpServers", server=name)
    server["args"] = server.get("args") or []
    server["env"] = _pairs(server.get("env"))
    return server


def _pairs(value: Any) -> list[JsonObject]:
    """`[{name, value}]`; a map is an accepted dialect."""
    if isinstance(value, dict):
        return [{"name": str(name), "value": str(text)} for name, text in value.items()]
    return value if isinstance(value, list) else []
