"""Converts an ACP prompt to Claude's message content, and MCP servers to its configuration."""

from __future__ import annotations

from dragoman.agents.native.prompt import words
from dragoman.wire.json_types import JsonObject, as_object, named_values, objects


def user_line(session_id: str, blocks: object) -> JsonObject:
    """The line that begins a turn (D-110)."""
    content = [_block(block) for block in objects(blocks)]
    return {
        "type": "user",
        "message": {"role": "user", "content": content},
        "parent_tool_use_id": None,
        "session_id": session_id,
    }


def _block(block: JsonObject) -> JsonObject:
    kind = block.get("type")
    if kind == "image":
        return _image(block)
    resource = as_object(block.get("resource"))
    mime = str(resource.get("mimeType") or "")
    if kind == "resource" and "text" not in resource and mime.startswith("image/"):
        return _image({"data": resource.get("blob"), "mimeType": mime})
    if kind == "resource" and "text" not in resource and mime == "application/pdf":
        source = {"type": "base64", "media_type": mime, "data": resource.get("blob")}
        return {"type": "document", "source": source}
    return {"type": "text", "text": words(block)}


def _image(block: JsonObject) -> JsonObject:
    if block.get("data"):
        source = {"type": "base64", "media_type": block.get("mimeType"), "data": block["data"]}
    else:
        source = {"type": "url", "url": block.get("uri")}
    return {"type": "image", "source": source}


def mcp_servers(servers: object) -> JsonObject:
    """ACP's list of MCP servers in the format of claude's configuration, by name."""
    found: JsonObject = {}
    for server in servers if isinstance(servers, list) else []:
        if not isinstance(server, dict) or not server.get("name"):
            continue
        kind = server.get("type", "stdio")
        if kind in ("http", "sse"):
            found[server["name"]] = {
                "type": kind,
                "url": server.get("url"),
                "headers": named_values(server.get("headers")),
            }
        elif kind == "stdio":
            found[server["name"]] = {
                "type": "stdio",
                "command": server.get("command"),
                "args": server.get("args") or [],
                "env": named_values(server.get("env")),
            }
    return found
