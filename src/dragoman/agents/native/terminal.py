"""A command of an agent's own as a terminal of its tool call.

The agent runs it, so no client can be asked for its output: it travels in `_meta`, in the words that clients with
`_meta.terminal_output` read. For others the gateway makes text of it (quirk terminal_in_meta).
"""

from __future__ import annotations

from dragoman.agents.json_types import JsonObject


def begun(tool_id: str, cwd: object = None) -> JsonObject:
    """Members of the tool call that a command belongs to; it has the call's id."""
    info = {"terminal_id": tool_id, **({"cwd": cwd} if cwd else {})}
    return {"content": [_content(tool_id)], "_meta": {"terminal_info": info}}


def printed(tool_id: str, data: str) -> JsonObject:
    """Members of an update with more output."""
    return {
        "content": [_content(tool_id)],
        "_meta": {"terminal_output": {"terminal_id": tool_id, "data": data}},
    }


def ended(tool_id: str, data: str, code: int | None) -> JsonObject:
    """Members of the last update: the output that was not told yet, and how it ended."""
    meta: JsonObject = printed(tool_id, data)["_meta"] if data else {}
    meta["terminal_exit"] = {"terminal_id": tool_id, "exit_code": code, "signal": None}
    return {"content": [_content(tool_id)], "_meta": meta}


def _content(tool_id: str) -> JsonObject:
    return {"type": "terminal", "terminalId": tool_id}
