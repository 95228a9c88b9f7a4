"""Translates each event of a journal into one event of the bridge, by a table of update kinds (`records` has records).

No event is left out: an event of an unknown kind becomes `unknown_update`, so that numbers rise by one. Values of wrong
types are converted to the documented ones (`shapes`); an update without an essential value, such as the id of its tool
call, becomes `unknown_update` too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from dragoman.bridge.events import shapes
from dragoman.bridge.events.records import notice, translate_record
from dragoman.gateway.delivery import events
from dragoman.gateway.json_types import JsonObject, as_object, encode, own_meta
from dragoman.wire import timestamps
from dragoman.wire.errors import Malformed

log = logging.getLogger(__name__)

Fields = JsonObject
UpdateReader = Callable[[JsonObject], Fields | None]

SESSION_STATES = frozenset(
    {
        "idle",
        "working",
        "silent",
        "waiting_for_permission",
        "parked",
        "agent_dead",
        "context_lost",
        "closed",
    }
)
RESULT = {"type": "result"}
"""Replaces, in `content`, the text that is sent as the call's result, so that it is not sent twice."""
TOOL_FIELDS = ("toolCallId", "title", "kind", "status", "content", "locations", "rawInput", "rawOutput")
_HEADER = ("type", "sessionId", "seq", "timestamp", "sessionUpdate", "_meta")


class _Params(msgspec.Struct, gc=False):
    update: dict[str, Any]


class _Line(msgspec.Struct, gc=False):
    params: _Params


_line = msgspec.json.Decoder(_Line)
_NOT_READABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def translate(session_id: str, seq: int | None, timestamp: str, event: bytes) -> bytes:
    """Translate a journal's event; an event that is not journaled has no number."""
    header: JsonObject = {"type": "", "sessionId": session_id, "seq": seq, "timestamp": timestamp}
    if seq is None:
        del header["seq"]
    try:
        return encode({**header, **(_record if event[:1] == events.RECORD else _update)(event)})
    except _NOT_READABLE:  # a number that Python cannot hold, such as 1e400: forwarded unread
        return encode({**header, "type": "unknown_update", "raw": msgspec.Raw(event[1:])})
    except (
        Exception
    ):  # even after a bug of the bridge the page gets the number of this event and the later events
        log.exception("event could not be translated", extra={"session": session_id, "seq": seq})
        return encode({**header, "type": "unknown_update", "raw": msgspec.Raw(event[1:])})


def lost(session_id: str, first_seq: int, last_seq: int) -> bytes:
    """The event that replaces damaged events of the journal; its number is that of the last one."""
    about = {"type": "events_lost", "sessionId": session_id, "seq": last_seq, "firstSeq": first_seq}
    return encode({**about, "timestamp": timestamps.now()})


def _record(event: bytes) -> Fields:
    try:
        record = events.read_record(event)
    except Malformed as error:
        raise msgspec.DecodeError(str(error)) from error
    return translate_record(record)


def _update(event: bytes) -> Fields:
    line = event[1:]
    try:
        update = _line.decode(line).params.update
    except msgspec.ValidationError:  # a notification that is no update
        return {"type": "unknown_update", "raw": msgspec.json.decode(line)}
    reader = UPDATES.get(str(update.get("sessionUpdate")))
    made = reader(update) if reader is not None else None
    if made is None:
        return {"type": "unknown_update", "raw": update}
    if reader is _user_message and event[:1] != events.PROMPT:
        made["author"] = "agent"
    return made


def _user_message(update: JsonObject) -> Fields:
    fields: Fields = {"type": "user_message", "content": shapes.block(update.get("content"))}
    message_id = own_meta(update).get("clientMessageId")
    return {**fields, "clientMessageId": message_id} if isinstance(message_id, str) else fields


def _chunk(kind: str, update: JsonObject) -> Fields:
    fields: Fields = {"type": kind, "content": ""}
    block = update.get("content")
    if not (isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)):
        block = shapes.block(block)
    if block["type"] == "text":
        fields["content"] = block["text"]
    else:
        fields["block"] = block
    message_id = update.get("messageId")
    if message_id is not None and isinstance(shapes.name(message_id), str):
        fields["messageId"] = shapes.name(message_id)
    return fields


def tool_fields(tool: JsonObject) -> Fields | None:
    """The documented fields of a tool call; None without a tool call id."""
    fields = shapes.tool_call({name: tool[name] for name in TOOL_FIELDS if tool.get(name) is not None})
    if not isinstance(fields, dict):
        return None
    own = own_meta(tool)
    return fields | {mark: True for mark in ("told", "unmediated") if own.get(mark) is True}


def _tool_started(update: JsonObject) -> Fields | None:
    fields = tool_fields(update)
    if fields is None:
        return None
    name = tool_name(update)
    given = fields.pop("rawInput", {})
    return {
        "type": "tool_call_started",
        **fields,
        "toolName": name,
        "title": fields.get("title") or name,
        "kind": fields.get("kind") or "other",
        "arguments": given,
    }


def tool_name(tool: JsonObject) -> str:
    """The agent's name of the tool: ACP has no field for it, so agents put it into different places."""
    meta = as_object(tool.get("_meta"))
    places = (tool, *(as_object(each) for each in meta.values()), meta)
    names = (place.get("toolName") for place in places)
    name = next((name for name in names if isinstance(name, str)), None)
    return name or shapes.text(tool.get("kind")) or "tool"


def _tool_changed(update: JsonObject) -> Fields | None:
    fields = tool_fields(update)
    if fields is None:
        return None
    terminal = _terminal(update)
    done = fields.get("status") in ("completed", "failed")
    if terminal and not done and fields.keys() <= {"toolCallId", "content"}:
        return {"type": "terminal_output", "toolCallId": fields["toolCallId"], **terminal}
    if terminal:
        fields["terminal"] = terminal
    if not done:
        return {"type": "tool_call_progress", **fields}
    result = _taken_result(fields)
    return {"type": "tool_call_completed", **fields, "result": result}


def _terminal(update: JsonObject) -> Fields:
    """Output and exit status of a command that the agent runs itself; agents send them in `_meta`."""
    meta = as_object(update.get("_meta"))
    told = meta.get("terminal_output_delta", meta.get("terminal_output"))
    ended = meta.get("terminal_exit")
    if told is None and ended is None:
        return {}
    text = told if isinstance(told, str) else as_object(told).get("data")
    where = as_object(told).get("terminal_id") or as_object(ended).get("terminal_id")
    where = shapes.name(where or update.get("toolCallId"))
    if not isinstance(where, str):
        where = shapes.name(update.get("toolCallId"))
    fields: Fields = {"terminalId": where, "output": shapes.text(text)}
    if isinstance(ended, dict):
        code, signal = shapes.number(ended.get("exit_code")), shapes.name(ended.get("signal"))
        fields["exitStatus"] = {
            "exitCode": None if isinstance(code, shapes.Wrong) else code,
            "signal": signal if isinstance(signal, str) else None,
        }
    return fields


def _taken_result(fields: Fields) -> object:
    """Take the tool's raw output, or its only text content, out of `fields`; a placeholder stays for the text."""
    if "rawOutput" in fields:
        return fields.pop("rawOutput")
    content = fields.get("content")
    texts = [each for each in content if _is_text(each)] if isinstance(content, list) else []
    if len(texts) != 1:
        return None
    fields["content"] = [RESULT if each is texts[0] else each for each in fields["content"]]
    return texts[0]["content"]["text"]


def _is_text(item: object) -> bool:
    """Whether the item is text without further members, which would be lost."""
    item = as_object(item)
    block = as_object(item.get("content"))
    plain = item.keys() == {"type", "content"} and block.keys() == {"type", "text"}
    return plain and item["type"] == "content" and block["type"] == "text" and isinstance(block["text"], str)


def _whole(fields: Fields) -> Fields | None:
    """The fields of an event; None if a value that it needs could not be read."""
    return None if shapes.WRONG in fields.values() else fields


def usage_fields(update: JsonObject) -> Fields:
    told = {name: value for name, value in update.items() if name not in _HEADER}
    return as_object(shapes.usage(told))


def _session_info(update: JsonObject) -> Fields:
    own = own_meta(update)
    fields = {name: value for name, value in {**update, **own}.items() if name not in _HEADER}
    state = fields.get("state")
    if not isinstance(state, str) or state not in SESSION_STATES:
        fields.pop("state", None)
    if fields.get("title") is not None:
        fields["title"] = shapes.text(fields["title"])
    return {"type": "session_info", **shapes.with_offer(fields)}


UPDATES: dict[str, UpdateReader] = {
    "user_message_chunk": _user_message,
    "agent_message_chunk": partial(_chunk, "message_chunk"),
    "agent_thought_chunk": partial(_chunk, "thought_chunk"),
    "tool_call": _tool_started,
    "tool_call_update": _tool_changed,
    "plan": lambda update: {"type": "plan_created", "entries": shapes.plan(update.get("entries"))},
    "current_mode_update": lambda update: _whole(
        {"type": "mode_changed", "modeId": shapes.name(update.get("currentModeId"))}
    ),
    "current_model_update": lambda update: _whole(
        {"type": "model_changed", "modelId": shapes.name(update.get("currentModelId"))}
    ),
    "config_option_update": lambda update: {
        "type": "config_options",
        "options": shapes.options(update.get("configOptions")),
    },
    "available_commands_update": lambda update: {
        "type": "commands_available",
        "commands": shapes.commands(update.get("availableCommands")),
    },
    "usage_update": lambda update: {"type": "usage", **usage_fields(update)},
    "session_info_update": _session_info,
    "notice": partial(notice, "info"),
}
