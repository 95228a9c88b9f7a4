"""Translates Codex's items into ACP updates, without IO.

An item comes when it starts and again when it is complete; text and reasoning also come as deltas, and are then not
sent again. Statuses are camelCase (D-115); an exit code is null until the command has ended (D-117).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable

from dragoman.agents.native import terminal
from dragoman.wire.json_types import JsonObject, as_object, objects

STATUS = {
    "inProgress": "in_progress",
    "completed": "completed",
    "failed": "failed",
    "declined": "failed",
    "interrupted": "failed",
}
COMMAND = "commandExecution"
SAID = {"agentMessage": "text", "plan": "text", "exitedReviewMode": "review"}
"""Items that are the agent's text, and the member that holds it."""
PLAN_STATUS = {"pending": "pending", "inProgress": "in_progress", "completed": "completed"}
ACTION_KINDS = {"read": "read", "listFiles": "search", "search": "search"}
_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_SHELL = re.compile(r"""^\S*/(?:ba|z|da)?sh -l?c (['"]?)(.*)\1$""", re.DOTALL)


class Items:
    def __init__(self) -> None:
        self._streamed: set[str] = set()
        self._printed: set[str] = set()
        self._open: dict[str, JsonObject] = {}
        self._readers: dict[str, Callable[[JsonObject], list[JsonObject]]] = {
            "item/started": self._started,
            "item/completed": self._completed,
            "item/agentMessage/delta": lambda p: self._delta("agent_message_chunk", p),
            "item/plan/delta": lambda p: self._delta("agent_message_chunk", p),
            "item/reasoning/summaryTextDelta": lambda p: self._delta("agent_thought_chunk", p),
            "item/reasoning/textDelta": lambda p: self._delta("agent_thought_chunk", p),
            "item/reasoning/summaryPartAdded": self._next_part,
            "item/commandExecution/outputDelta": self._output,
            "turn/plan/updated": _plan,
            "thread/tokenUsage/updated": _usage,
            "thread/name/updated": _named,
        }

    def read(self, method: str, params: JsonObject) -> list[JsonObject]:
        """The updates for one notification."""
        reader = self._readers.get(method)
        return reader(params) if reader is not None else []

    def introduce(self, item_id: str, tool: JsonObject) -> list[JsonObject]:
        """Updates that announce a tool call before a permission question about it, unless already open."""
        if item_id in self._open:
            return []
        self._open[item_id] = tool
        title = tool.get("title") or "Edit files"
        return [
            {"sessionUpdate": "tool_call", "toolCallId": item_id, "status": "pending", **tool, "title": title}
        ]

    def known(self, item_id: str) -> JsonObject:
        return self._open.get(item_id, {})

    def end_turn(self) -> list[JsonObject]:
        """Updates that fail all open calls at the end of a turn (codex leaves a cancelled one in progress)."""
        left, self._open = list(self._open), {}
        self._streamed.clear()
        self._printed.clear()
        return [
            {"sessionUpdate": "tool_call_update", "toolCallId": item, "status": "failed"} for item in left
        ]

    def replay(self, item: JsonObject) -> list[JsonObject]:
        """The updates for an item of a former turn."""
        if item.get("type") == "userMessage":
            texts = [
                str(block.get("text", ""))
                for block in objects(item.get("content"))
                if block.get("type") == "text"
            ]
            return [_chunk("user_message_chunk", text) for text in texts if text]
        updates = self._completed({"item": item})
        self._open.clear()
        return updates

    def _started(self, params: JsonObject) -> list[JsonObject]:
        item = as_object(params.get("item"))
        shown = describe(item)
        if shown is None:
            return []
        id = str(item.get("id"))
        kind = "tool_call_update" if id in self._open else "tool_call"
        self._open[id] = shown
        begun = terminal.begun(id, item.get("cwd")) if item.get("type") == COMMAND else {}
        return [{"sessionUpdate": kind, "toolCallId": id, "status": "in_progress", **shown, **begun}]

    def _completed(self, params: JsonObject) -> list[JsonObject]:
        item = as_object(params.get("item"))
        id, kind = str(item.get("id")), str(item.get("type"))
        if kind in SAID:
            return self._unless_streamed("agent_message_chunk", id, str(item.get(SAID[kind]) or ""))
        if kind == "contextCompaction":
            return [_chunk("agent_message_chunk", "The conversation was shortened to make room.\n")]
        if kind == "reasoning":
            parts = item.get("summary") or item.get("content")
            text = "\n\n".join(map(str, parts)) if isinstance(parts, list) else ""
            return self._unless_streamed("agent_thought_chunk", id, text)
        shown = describe(item)
        if shown is None:
            return []
        update = "tool_call_update" if self._open.pop(id, None) is not None else "tool_call"
        ended = outcome(item)
        if kind == COMMAND:
            told = "" if id in self._printed else str(item.get("aggregatedOutput") or "")
            ended |= terminal.ended(id, told, item.get("exitCode"))
        self._printed.discard(id)
        return [{"sessionUpdate": update, "toolCallId": id, **shown, **ended}]

    def _delta(self, kind: str, params: JsonObject) -> list[JsonObject]:
        text = str(params.get("delta") or "")
        self._streamed.add(str(params.get("itemId")))
        return [_chunk(kind, text)] if text else []

    def _next_part(self, params: JsonObject) -> list[JsonObject]:
        return [_chunk("agent_thought_chunk", "\n\n")] if str(params.get("itemId")) in self._streamed else []

    def _unless_streamed(self, kind: str, id: str, text: str) -> list[JsonObject]:
        return [] if id in self._streamed or not text else [_chunk(kind, text)]

    def _output(self, params: JsonObject) -> list[JsonObject]:
        id = str(params.get("itemId"))
        if id not in self._open:
            return []
        self._printed.add(id)
        told = terminal.printed(id, str(params.get("delta") or ""))
        return [{"sessionUpdate": "tool_call_update", "toolCallId": id, **told}]


def describe(item: JsonObject) -> JsonObject | None:
    """An item as the members of a tool call; None if it is no tool call."""
    reader = TOOLS.get(str(item.get("type")))
    return reader(item) if reader is not None else None


def outcome(item: JsonObject) -> JsonObject:
    """Status and output of a completed call."""
    ended: JsonObject = {"status": STATUS.get(str(item.get("status")), "completed")}
    if item.get("type") == COMMAND:
        printed, code = item.get("aggregatedOutput"), item.get("exitCode")
        ended["rawOutput"] = {"output": printed, "exitCode": code, "durationMs": item.get("durationMs")}
    elif item.get("type") == "mcpToolCall":
        result = as_object(item.get("result"))
        ended["rawOutput"] = item.get("error") or result
        blocks = objects(result.get("content"))
        ended["content"] = [{"type": "content", "content": block} for block in blocks]
    elif item.get("type") in ("fileChange", "dynamicToolCall", "webSearch"):
        ended["rawOutput"] = {key: value for key, value in item.items() if key not in ("id", "type")}
    return ended


def bare_command(command: str) -> str:
    """A command without the shell that Codex runs it in."""
    inner = _SHELL.match(command)
    return inner[2] if inner else command


def _command(item: JsonObject) -> JsonObject:
    command = str(item.get("command") or "")
    actions = objects(item.get("commandActions"))
    kinds = {str(action.get("type")) for action in actions}
    alike = kinds.pop() if len(kinds) == 1 else ""
    shown: JsonObject = {
        "title": bare_command(command),
        "kind": ACTION_KINDS.get(alike, "execute"),
        "rawInput": {"command": command, "cwd": item.get("cwd")},
    }
    cwd = str(item.get("cwd") or "")
    named = [posixpath.join(cwd, str(action["path"])) for action in actions if action.get("path")]
    places = [{"path": posixpath.normpath(path)} for path in named if path.startswith("/")]
    if places:
        shown["locations"] = places
    return shown


def _file_change(item: JsonObject) -> JsonObject:
    changes = objects(item.get("changes"))
    paths = [str(change.get("path")) for change in changes]
    kinds = {str(as_object(change.get("kind")).get("type")) for change in changes}
    content = [diff for change in changes for diff in diffs(change)]
    return {
        "title": f"Edit {', '.join(paths)}" if paths else "Edit files",
        "kind": "delete" if kinds == {"delete"} else "edit",
        "rawInput": {"changes": changes},
        "locations": [place for change in changes for place in _places(change)],
        "content": content,
    }


def _mcp(item: JsonObject) -> JsonObject:
    title = f"{item.get('server')}: {item.get('tool')}"
    named = {"server": item.get("server"), "tool": item.get("tool")}
    return {
        "title": title,
        "kind": "other",
        "rawInput": item.get("arguments"),
        "_meta": {"dragoman": {"mcp": named}},
    }


def _dynamic(item: JsonObject) -> JsonObject:
    return {"title": str(item.get("tool")), "kind": "other", "rawInput": item.get("arguments")}


def _web_search(item: JsonObject) -> JsonObject:
    query = str(item.get("query") or "")
    return {"title": f"Search the web for {query}".strip(), "kind": "fetch", "rawInput": {"query": query}}


def _helper(item: JsonObject) -> JsonObject:
    """A call that starts, prompts or ends a sub-agent of Codex."""
    title = f"{item.get('tool')}: {item.get('prompt') or ''}".rstrip(": ")
    return {"title": title, "kind": "think", "rawInput": {"prompt": item.get("prompt")}}


def _image(item: JsonObject) -> JsonObject:
    path = str(item.get("path") or "")
    return {
        "title": f"View {path or 'image'}",
        "kind": "read",
        "locations": [{"path": path}] if path else [],
    }


TOOLS: dict[str, Callable[[JsonObject], JsonObject]] = {
    COMMAND: _command,
    "fileChange": _file_change,
    "mcpToolCall": _mcp,
    "dynamicToolCall": _dynamic,
    "webSearch": _web_search,
    "imageView": _image,
    "collabAgentToolCall": _helper,
}


def diffs(change: JsonObject) -> list[JsonObject]:
    """The diffs of one changed file: one per hunk, or the whole text of a new or removed file."""
    path, text = str(change.get("path")), str(change.get("diff") or "")
    kind = as_object(change.get("kind")).get("type")
    if kind == "add":
        return [{"type": "diff", "path": path, "oldText": None, "newText": text}]
    if kind == "delete":
        return [{"type": "diff", "path": path, "oldText": text, "newText": ""}]
    shown = []
    for hunk in _hunks(text):
        old = [line[1:] for line in hunk if line[:1] in (" ", "-")]
        new = [line[1:] for line in hunk if line[:1] in (" ", "+")]
        shown.append({"type": "diff", "path": path, "oldText": "\n".join(old), "newText": "\n".join(new)})
    return shown


def _hunks(diff: str) -> list[list[str]]:
    hunks: list[list[str]] = []
    for line in diff.splitlines():
        if line.startswith("@@"):
            hunks.append([])
        elif hunks and not line.startswith("\\"):
            hunks[-1].append(line)
    return hunks


def _places(change: JsonObject) -> list[JsonObject]:
    path = str(as_object(change.get("kind")).get("move_path") or change.get("path"))
    starts = [_HUNK.match(line) for line in str(change.get("diff") or "").splitlines()]
    lines = [int(start[1]) for start in starts if start]
    return [{"path": path, "line": line} for line in lines] or [{"path": path}]


def _plan(params: JsonObject) -> list[JsonObject]:
    entries = [
        {
            "content": str(step.get("step")),
            "priority": "medium",
            "status": PLAN_STATUS.get(str(step.get("status")), "pending"),
        }
        for step in objects(params.get("plan"))
    ]
    return [{"sessionUpdate": "plan", "entries": entries}]


def _usage(params: JsonObject) -> list[JsonObject]:
    usage = as_object(params.get("tokenUsage"))
    used, size = as_object(usage.get("last")).get("totalTokens"), usage.get("modelContextWindow")
    if not isinstance(used, int) or not isinstance(size, int):
        return []
    return [{"sessionUpdate": "usage_update", "used": used, "size": size}]


def _named(params: JsonObject) -> list[JsonObject]:
    return [{"sessionUpdate": "session_info_update", "title": params.get("threadName")}]


def _chunk(kind: str, text: str) -> JsonObject:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}


def prompt_of(turn: JsonObject) -> str | None:
    """The text that began a stored turn; None for a turn that no message began, such as a compaction."""
    for item in objects(turn.get("items")):
        if item.get("type") == "userMessage":
            parts = objects(item.get("content"))
            return "\n".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")
    return None
