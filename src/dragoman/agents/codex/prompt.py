"""Converts an ACP prompt to Codex's user input, and MCP servers to its configuration."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.agents.native.prompt import words
from dragoman.wire.json_types import JsonObject, named_values, objects


def user_input(blocks: object) -> list[JsonObject]:
    return [_block(block) for block in objects(blocks)]


def _block(block: JsonObject) -> JsonObject:
    kind = block.get("type")
    if kind == "image":
        data = f"data:{block.get('mimeType')};base64,{block.get('data')}"
        return {"type": "image", "url": data if block.get("data") else block.get("uri")}
    return {"type": "text", "text": words(block), "text_elements": []}


def thread_config(servers: object, folders: Sequence[str] = ()) -> JsonObject:
    """`config` of `thread/start`: MCP servers by name (stdio or http), and writable folders."""
    found: JsonObject = {}
    for server in objects(servers):
        name = str(server.get("name"))
        if server.get("type") == "http":
            found[name] = {"url": server.get("url"), "http_headers": named_values(server.get("headers"))}
        elif server.get("type", "stdio") == "stdio":
            env = named_values(server.get("env"))
            found[name] = {"command": server.get("command"), "args": server.get("args") or [], "env": env}
    config: JsonObject = {"mcp_servers": found} if found else {}
    if folders:
        config["sandbox_workspace_write"] = {"writable_roots": list(folders)}
    return config
