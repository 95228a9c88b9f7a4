"""The MCP servers of a session: the client's, checked and in the form that the agent accepts, and ours (D-31, G-035).

Each member is checked here, for every agent, so that the error names its place (`mcpServers[0].env[1].name`)
instead of a server that fails to start later.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dragoman.config.sections.mcp import McpConfig
from dragoman.gateway.access.capabilities import AgentCapabilities
from dragoman.gateway.json_types import JsonObject
from dragoman.wire.errors import RpcError, invalid_params

if TYPE_CHECKING:
    from dragoman.gateway.runtime import Runtime

log = logging.getLogger(__name__)

FIELD = "mcpServers"
REMOTE = ("http", "sse")
STDIO = (None, "stdio")
NUL = "\0"
LINE_ENDS = "\r\n\0"


def check_mcp_servers(value: object) -> list[JsonObject]:
    """The servers in v1's form; missing or null counts as none. Raises `RpcError` that names the first bad member."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise invalid_params("mcpServers must be a list", FIELD, field=FIELD)
    return [_checked(entry, f"{FIELD}[{index}]", index) for index, entry in enumerate(value)]


async def configured_servers(gateway: Runtime, agent_name: str, cwd: str) -> list[JsonObject]:
    """The servers of `[mcp.NAME]` for a session, with their secrets; raises `RpcError` if one cannot be read."""
    if not gateway.config.mcp:
        return []
    remote = gateway.agent_config(agent_name).kind == "remote"
    return [
        await _configured(gateway, name, server)
        for name, server in gateway.config.mcp.items()
        if server.is_for(agent_name, remote, cwd)
    ]


async def _configured(gateway: Runtime, name: str, server: McpConfig) -> JsonObject:
    secrets = await gateway.read_secrets(server.secrets, f"The MCP server {name}")
    values = {**server.env, **server.headers, **secrets}
    gateway.audit.hide(values.values())
    pairs = _pairs(values, f"mcp.{name}", name, NUL if server.url is None else LINE_ENDS)
    if server.url is not None:
        return {"type": server.transport, "name": name, "url": server.url, "headers": pairs}
    return {"name": name, "command": server.command[0], "args": server.command[1:], "env": pairs}


def mcp_servers(
    value: object, agent: AgentCapabilities, agent_name: str, configured: Sequence[JsonObject] = ()
) -> list[JsonObject]:
    """The client's servers and the configured ones for one agent; of two with one name the client's is taken.

    Raises for a server of the client whose transport the agent does not support; a configured one is left out.
    """
    servers = check_mcp_servers(value)
    for server in servers:
        kind = server.get("type")
        if kind in REMOTE and not agent.mcp(kind):
            raise invalid_params(
                f"The agent {agent_name} cannot use the MCP server {server['name']}: "
                f"it does not support {kind} servers",
                FIELD,
                server=server["name"],
                capability=f"mcpCapabilities.{kind}",
            )
    named = {server.get("name") for server in servers}
    for server in configured:
        kind, name = server.get("type"), server["name"]
        if name in named:
            log.info("the client has an MCP server %s of its own", name, extra={"agent": agent_name})
        elif kind in REMOTE and not agent.mcp(kind):
            log.warning(
                "left out the MCP server %s: the agent does not support %s servers", name, kind,
                extra={"agent": agent_name},
            )  # fmt: skip
        else:
            servers.append(server)
    return servers


def _checked(entry: object, place: str, index: int) -> JsonObject:
    if not isinstance(entry, dict):
        raise _wrong(place, "must be an object", f"number {index}")
    server, kind = dict(entry), entry.get("type")
    if kind is not None and not isinstance(kind, str):
        raise _wrong(f"{place}.type", "must be text", f"number {index}")
    if kind not in STDIO and kind not in REMOTE:
        return server  # the agent decides about an unknown transport
    name = server.get("name")
    name = name if isinstance(name, str) and name else f"number {index}"
    if kind in REMOTE:
        _text(server, "url", place, name, LINE_ENDS)
        server["headers"] = _pairs(server.get("headers"), f"{place}.headers", name, LINE_ENDS)
    else:
        server.pop("type", None)  # v1 has no type on stdio servers
        _text(server, "command", place, name, NUL)
        server["args"] = _words(server.get("args"), f"{place}.args", name)
        server["env"] = _pairs(server.get("env"), f"{place}.env", name, NUL)
    _text(server, "name", place, name, LINE_ENDS)
    return server


def _text(holder: JsonObject, member: str, place: str, name: object, forbidden: str) -> None:
    """Check a required text."""
    value = holder.get(member)
    if member not in holder or value is None:
        raise _wrong(f"{place}.{member}", "is required", name)
    if not isinstance(value, str):
        raise _wrong(f"{place}.{member}", "must be text", name)
    if not value.strip():
        raise _wrong(f"{place}.{member}", "must not be empty", name)
    _check_characters(value, f"{place}.{member}", name, forbidden)


def _words(value: object, place: str, name: object) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise _wrong(place, "must be a list of texts", name)
    for index, word in enumerate(value):
        if not isinstance(word, str):
            raise _wrong(f"{place}[{index}]", "must be text", name)
        _check_characters(word, f"{place}[{index}]", name, NUL)
    return value


def _pairs(value: object, place: str, name: object, forbidden: str) -> list[JsonObject]:
    """A list `[{name, value}]`; a map, also with numbers as values, is an accepted dialect."""
    if value is None:
        return []
    if isinstance(value, dict):
        return [_of_map(key, text, f"{place}.{key}", name, forbidden) for key, text in value.items()]
    if not isinstance(value, list):
        raise _wrong(place, "must be a list of objects with name and value", name)
    for index, pair in enumerate(value):
        at = f"{place}[{index}]"
        if not isinstance(pair, dict):
            raise _wrong(at, "must be an object with name and value", name)
        _text(pair, "name", at, name, _forbidden_in_names(forbidden))
        if not isinstance(pair.get("value"), str):
            raise _wrong(f"{at}.value", "must be text" if "value" in pair else "is required", name)
        _check_characters(pair["value"], f"{at}.value", name, forbidden)
    return value


def _of_map(key: str, text: object, place: str, name: object, forbidden: str) -> JsonObject:
    if not isinstance(text, str | int | float) or isinstance(text, bool):
        raise _wrong(place, "must be text", name)
    if not key.strip():
        raise _wrong(place, "must have a name", name)
    _check_characters(key, place, name, _forbidden_in_names(forbidden))
    _check_characters(str(text), place, name, forbidden)
    return {"name": key, "value": str(text)}


def _forbidden_in_names(forbidden: str) -> str:
    """The forbidden characters plus those that end the name of a variable or header."""
    return f"={forbidden}" if forbidden == NUL else f": {forbidden}"


def _check_characters(value: str, place: str, name: object, forbidden: str) -> None:
    found = next((each for each in value if each in forbidden), None)
    if found is not None:
        raise _wrong(place, f"must not contain {found!r}", name)


def _wrong(place: str, how: str, name: object) -> RpcError:
    return invalid_params(f"{place} {how} (MCP server {name})", FIELD, field=place, server=name)
