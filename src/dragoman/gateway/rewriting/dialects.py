"""Converts older and foreign forms of agents' messages to ACP v1 (the D rows of docs/reference/protocol-rules.md).

Each reader edits a decoded object in place and returns True if it changed anything; unknown members stay. An update
kind without a reader here is passed on byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from dragoman.gateway.json_types import JsonObject, as_object

RENAMED_KINDS = {  # D-60, D-67, D-70
    "thought_chunk": "agent_thought_chunk",
    "thinking_chunk": "agent_thought_chunk",
    "available_commands": "available_commands_update",
    "config_options": "config_option_update",
}
PARTIAL_OPTIONS = "config_options"
"""A list under this name has only the changed options; `Options` completes and renames it."""
TOOL_STATUS = {  # D-64
    "executing": "in_progress",
    "running": "in_progress",
    "error": "failed",
    "cancelled": "failed",
    "canceled": "failed",
    "done": "completed",
    "success": "completed",
}
TOOL_KIND = {"write": "edit"}  # D-65
STOP_REASONS = frozenset({"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"})  # D-50
OPTION_KINDS = frozenset({"allow_once", "allow_always", "reject_once", "reject_always"})
CONTENT_TYPES = frozenset({"text", "image", "audio", "resource", "resource_link"})
TOOL_CONTENT_TYPES = frozenset({"content", "diff", "terminal"})

Reader = Callable[[JsonObject], bool]


def read_update(update: JsonObject) -> list[JsonObject] | None:
    """The update as one or more v1 updates; None if it is v1 already."""
    kind = update.get("sessionUpdate")
    if kind == "user_message":
        return _user_message(update)
    changed = False
    if isinstance(kind, str) and kind in RENAMED_KINDS and kind != PARTIAL_OPTIONS:
        update["sessionUpdate"] = kind = RENAMED_KINDS[kind]
        changed = True
    reader = UPDATE_READERS.get(kind) if isinstance(kind, str) else None
    if reader is not None and reader(update):
        changed = True
    return [update] if changed else None


def read_tool(tool: JsonObject) -> bool:
    """Convert a tool call, flat or nested in `toolCall` (D-62 to D-65, D-83)."""
    changed = _flatten(tool)
    name = tool.pop("toolName", None)
    if name is not None:
        tool.setdefault("title", name)
        _own_meta(tool)["toolName"] = name
        changed = True
    if "arguments" in tool:
        tool.setdefault("rawInput", tool.pop("arguments"))
        changed = True
    for field, table in (("status", TOOL_STATUS), ("kind", TOOL_KIND)):
        value = tool.get(field)
        if isinstance(value, str) and value in table:
            tool[field] = table[value]
            changed = True
    if "result" in tool:
        _tool_result(tool, tool.pop("result"))
        changed = True
    return _tool_content(tool) or changed


def read_plan(update: JsonObject) -> bool:
    """Convert `steps` to `entries`, and entries with ids or without a priority (D-66)."""
    changed = False
    nested = update.get("plan")
    if isinstance(nested, dict):
        update.pop("plan")
        update.update({**nested, "sessionUpdate": update.get("sessionUpdate")})
        changed = True
    changed |= _rename(update, "steps", "entries", list)
    return _each(update, "entries", _plan_entry) or changed


def read_commands(update: JsonObject) -> bool:
    """Convert `{unstructured: {hint}}` to `{hint}` (D-68), and the old member name (D-67)."""
    changed = _rename(update, "commands", "availableCommands", list)
    return _each(update, "availableCommands", _command) or changed


def read_mode(update: JsonObject) -> bool:
    """Convert `currentMode`, or `modeId` as in the official example, to `currentModeId` (D-69, D-120)."""
    return _rename(update, "currentMode", "currentModeId") or _rename(update, "modeId", "currentModeId")


def read_config_options(holder: JsonObject) -> bool:
    """Convert `values: [{id, name}]` without a type to a typed select (D-33)."""
    return _each(holder, "configOptions", _config_option)


def read_session_result(result: JsonObject) -> bool:
    """Convert the result of `session/new`, `load`, `resume` and `fork` (D-33, D-34)."""
    changed = read_config_options(result)
    modes = result.get("modes")
    return (isinstance(modes, dict) and _rename(modes, "currentMode", "currentModeId")) or changed


def read_permission(params: JsonObject) -> bool:
    """Convert options with `title` and no kind, and a tool call in its old form (D-80, D-83)."""
    tool = params.get("toolCall")
    changed = isinstance(tool, dict) and read_tool(tool)
    return _each(params, "options", _permission_option) or changed


def read_stop_reason(result: JsonObject) -> JsonObject | None:
    """The result with a v1 stop reason, the original in `_meta` (D-50); None if it is v1 already or an error."""
    reason = result.get("stopReason")
    if is_one_of(reason, STOP_REASONS) or reason == "error":
        return None
    meta = as_object(result.get("_meta"))
    return {**result, "stopReason": "end_turn", "_meta": {**meta, "dragoman": {"stopReason": reason}}}


_LOST_SESSION = re.compile(
    r"\bsessions?\b.*\b(not found|unknown|does not exist|no such|not exist|expired|invalid id)\b"
    r"|\b(unknown|no such|invalid|nonexistent)\b.*\bsession( ?id)?\b",
    re.IGNORECASE | re.DOTALL,
)
_LOST_SESSION_CODES = frozenset({-32001, -32602, -32000, -32603})


def is_session_lost(error: JsonObject) -> bool:
    """Whether an agent's error means that it does not know the session (D-100; -32603: claude, qwen)."""
    return is_one_of(error.get("code"), _LOST_SESSION_CODES) and bool(
        _LOST_SESSION.search(str(error.get("message", "")))
    )


def is_one_of(value: object, known: frozenset[Any]) -> bool:
    """Whether a peer's value is in `known`; False for a list or object, which cannot be hashed."""
    return isinstance(value, str | int) and value in known


def _own_meta(holder: JsonObject) -> JsonObject:
    """`_meta.dragoman` of an object, created if it is absent or null."""
    meta = holder["_meta"] = as_object(holder.get("_meta"))
    own: JsonObject = as_object(meta.get("dragoman"))
    meta["dragoman"] = own
    return own


def _user_message(update: JsonObject) -> list[JsonObject]:
    """Split a whole message, of one block or many, into one chunk per block (D-61)."""
    content = update.get("content")
    rest = {key: value for key, value in update.items() if key not in ("content", "sessionUpdate")}
    blocks = content if isinstance(content, list) else [content]
    return [{"sessionUpdate": "user_message_chunk", "content": _block(block), **rest} for block in blocks]


def _block(content: object) -> object:
    return {"type": "text", "text": content} if isinstance(content, str) else content


def _flatten(tool: JsonObject) -> bool:
    nested = tool.get("toolCall")
    if not isinstance(nested, dict):
        return False
    del tool["toolCall"]
    for key, value in nested.items():
        tool.setdefault(key, value)
    return True


def _tool_result(tool: JsonObject, result: Any) -> None:
    if isinstance(result, dict) and is_one_of(result.get("type"), CONTENT_TYPES):
        tool.setdefault("content", [{"type": "content", "content": result}])
        return
    tool.setdefault("rawOutput", result)
    if isinstance(result, str):
        tool.setdefault("content", [{"type": "content", "content": _block(result)}])


def _tool_content(tool: JsonObject) -> bool:
    """Wrap bare blocks, and give untyped entries the type that their members imply (D-63, D-121)."""
    items = tool.get("content")
    if not isinstance(items, list):
        return False
    changed = False
    for index, item in enumerate(items):
        if not isinstance(item, dict) or is_one_of(item.get("type"), TOOL_CONTENT_TYPES):
            continue
        if is_one_of(item.get("type"), CONTENT_TYPES):
            items[index] = {"type": "content", "content": item}
        elif "type" not in item and "terminalId" in item:
            item["type"] = "terminal"
        elif "type" not in item and "newText" in item:
            item["type"] = "diff"
        else:
            continue
        changed = True
    return changed


def _rename(holder: JsonObject, former: str, name: str, kind: type = object) -> bool:
    """Give a member of that kind its name in v1, unless a member has that name already."""
    if name in holder or former not in holder or not isinstance(holder[former], kind):
        return False
    holder[name] = holder.pop(former)
    return True


def _each(holder: JsonObject, name: str, reader: Reader) -> bool:
    """Convert the objects in a list."""
    items = holder.get(name)
    return isinstance(items, list) and True in [reader(item) for item in items if isinstance(item, dict)]


def _command(command: JsonObject) -> bool:
    wrapped = as_object(command.get("input")).get("unstructured")
    if isinstance(wrapped, dict):
        command["input"] = wrapped
        return True
    return False


def _plan_entry(entry: JsonObject) -> bool:
    changed = _rename(entry, "description", "content")
    for field, default in (("priority", "medium"), ("status", "pending")):
        if field not in entry:
            entry[field] = default
            changed = True
    if changed and "id" in entry:
        _own_meta(entry)["id"] = entry.pop("id")
    return changed


def _config_option(option: JsonObject) -> bool:
    changed = _rename(option, "values", "options", list)
    if "type" not in option and "options" in option:
        option["type"] = "select"
        changed = True
    return _each(option, "options", _config_value) or changed


def _config_value(value: JsonObject) -> bool:
    return "options" not in value and _rename(value, "id", "value")


def _permission_option(option: JsonObject) -> bool:
    changed = False
    if "name" not in option:
        option["name"] = option.pop("title", None) or str(option.get("optionId", ""))
        changed = True
    if not is_one_of(option.get("kind"), OPTION_KINDS):
        option["kind"] = _guess_option_kind(str(option.get("optionId", "")))
        _own_meta(option)["kindGuessed"] = True
        changed = True
    return changed


def _guess_option_kind(option_id: str) -> str:
    """The kind of an option without one, by its id: a rejection unless the id begins with "allow" (D-80)."""
    lowered = option_id.lower()
    scope = "always" if "always" in lowered else "once"
    return f"allow_{scope}" if lowered.startswith("allow") else f"reject_{scope}"


UPDATE_READERS: dict[str, Reader] = {
    "tool_call": read_tool,
    "tool_call_update": read_tool,
    "plan": read_plan,
    "available_commands_update": read_commands,
    "current_mode_update": read_mode,
    "config_option_update": read_config_options,
    PARTIAL_OPTIONS: read_config_options,
}
