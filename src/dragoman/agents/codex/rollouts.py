"""Reads the rollouts of Codex: its own record of each thread.

`codex` writes `sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl` below its home, one record per line: a time, a type and a
payload. The first is `session_meta`; what people and the model said are `event_msg`, calls of tools `response_item`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from dragoman.wire.json_types import JsonObject, as_object

HEAD_LINES = 40
"""Lines that are read to find a thread's folder and first words."""
TITLE_LENGTH = 80
_MESSAGES = {
    "user_message": ("user_message_chunk", "message"),
    "agent_message": ("agent_message_chunk", "message"),
    "agent_reasoning": ("agent_thought_chunk", "text"),
}
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")


class Rollouts:
    def __init__(self, environ: Mapping[str, str]) -> None:
        home = Path(environ.get("CODEX_HOME") or Path(environ.get("HOME", ""), ".codex"))
        self._sessions = home / "sessions"

    def files(self) -> Iterator[Path]:
        return self._sessions.glob("*/*/*/rollout-*.jsonl")

    def info(self, path: Path) -> JsonObject | None:
        """Folder and title of a thread; None for a file without a conversation."""
        cwd = title = ""
        for number, (_, kind, payload) in enumerate(_records(path)):
            if kind == "session_meta":
                cwd = str(payload.get("cwd") or "")
            elif kind == "event_msg" and payload.get("type") == "user_message":
                title = (str(payload.get("message", "")).strip().splitlines() or [""])[0][:TITLE_LENGTH]
            if (cwd and title) or number > HEAD_LINES:
                break
        return {"cwd": cwd, "title": title or None} if cwd else None

    def updates(self, path: Path) -> Iterator[tuple[str, JsonObject]]:
        """The conversation as updates, each with its time."""
        for number, (stamp, kind, payload) in enumerate(_records(path)):
            told = str(payload.get("type"))
            if kind == "event_msg" and told in _MESSAGES:
                update, member = _MESSAGES[told]
                block = {"type": "text", "text": str(payload.get(member, ""))}
                yield stamp, {"sessionUpdate": update, "messageId": str(number), "content": block}
            elif kind == "response_item" and told in (*_CALLS, *_OUTPUTS):
                yield stamp, _call(told, payload)


def _call(told: str, payload: JsonObject) -> JsonObject:
    """A tool call, or its output."""
    call = {"toolCallId": str(payload.get("call_id") or payload.get("id") or "?")}
    if told in _CALLS:
        given = payload.get("arguments") or payload.get("input") or payload.get("action") or ""
        words = given if isinstance(given, str) else msgspec.json.encode(given).decode()
        return {**call, "sessionUpdate": "tool_call", "title": f"{payload.get('name', told)} {words}"}
    output = payload.get("output")
    text = output if isinstance(output, str) else str(as_object(output).get("content", ""))
    content = [{"type": "content", "content": {"type": "text", "text": text}}]
    return {**call, "sessionUpdate": "tool_call_update", "content": content}


def _records(path: Path) -> Iterator[tuple[str, str, JsonObject]]:
    """Time, type and payload of each record; lines that are not JSON are skipped."""
    try:
        with path.open("rb") as lines:
            for line in lines:
                try:
                    record = as_object(msgspec.json.decode(line))
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    continue
                yield str(record.get("timestamp")), str(record.get("type")), as_object(record.get("payload"))
    except OSError:
        return  # removed since it was listed
