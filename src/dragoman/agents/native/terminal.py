"""Shows a command that the agent itself runs as a terminal of its tool call.

The client does not run the command, so its output is sent in `_meta`, in the format that clients with
`_meta.terminal_output` read. For others the gateway turns it into text (quirk terminal_in_meta).
"""

from __future__ import annotations

from dragoman.wire.json_types import JsonObject


def begun(tool_id: str, cwd: object = None) -> JsonObject:
    """Members of a command's tool call; the terminal has the call's id."""
    info = {"terminal_id": tool_id, **({"cwd": cwd} if cwd else {})}
    return {"content": [_content(tool_id)], "_meta": {"terminal_info": info}}


def printed(tool_id: str, data: str) -> JsonObject:
    """Members of an update with more output."""
    return {
        "content": [_content(tool_id)],
        "_meta": {"terminal_output": {"terminal_id": tool_id, "data": data}},
    }


def ended(tool_id: str, data: str, code: int | None) -> JsonObject:
    """Members of the last update: the output not sent yet, and the exit code."""
    meta: JsonObject = printed(tool_id, data)["_meta"] if data else {}
    meta["terminal_exit"] = {"terminal_id": tool_id, "exit_code": code, "signal": None}
    return {"content": [_content(tool_id)], "_meta": meta}


def _content(tool_id: str) -> JsonObject:
    return {"type": "terminal", "terminalId": tool_id}
