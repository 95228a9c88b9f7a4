"""Makes an event of each `session/update`, by one table; what has no entry is `Unknown`."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.client.events import (
    CaughtUp,
    CommandsChanged,
    Event,
    InfoChanged,
    ModeChanged,
    Notice,
    OptionsChanged,
    Plan,
    PlanStep,
    Text,
    Thought,
    ToolStarted,
    ToolUpdated,
    TurnEnded,
    Unknown,
    Usage,
    UserMessage,
)
from dragoman.wire.json_types import JsonObject, as_object, objects, own_meta

INTERRUPTED = "This turn was interrupted, or its end could not be saved."


def read_update(update: JsonObject, seq: int | None) -> Event:
    """The event of an update; never raises, whatever the agent sent."""
    kind = str(update.get("sessionUpdate"))
    read = _READERS.get(kind)
    return Unknown(kind, raw=update, seq=seq) if read is None else read(update, seq)


def text_of(content: object) -> str:
    """A content block as text; what is no text is named in brackets."""
    block = as_object(content)
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    if kind == "resource_link":
        return f"[{block.get('name') or block.get('uri')}]"
    if kind == "resource":
        return f"[{as_object(block.get('resource')).get('uri')}]"
    return f"[{kind}]" if kind else ""


def chunk_text(update: JsonObject) -> str:
    """The text of a chunk; a chunk that is only a Markdown fence is left out."""
    return "" if own_meta(update).get("fence") is True else text_of(update.get("content"))


def _text(update: JsonObject, seq: int | None) -> Event:
    return Text(chunk_text(update), raw=update, seq=seq)


def _thought(update: JsonObject, seq: int | None) -> Event:
    return Thought(text_of(update.get("content")), raw=update, seq=seq)


def _user_message(update: JsonObject, seq: int | None) -> Event:
    return UserMessage(text_of(update.get("content")), raw=update, seq=seq)


def _tool_started(update: JsonObject, seq: int | None) -> Event:
    return ToolStarted(
        str(update.get("toolCallId")),
        _string(update, "title") or "tool call",
        _string(update, "kind") or "",
        _string(update, "status") or "pending",
        raw=update,
        seq=seq,
    )


def _tool_updated(update: JsonObject, seq: int | None) -> Event:
    title, status = _string(update, "title"), _string(update, "status")
    return ToolUpdated(str(update.get("toolCallId")), title, status, raw=update, seq=seq)


def _plan(update: JsonObject, seq: int | None) -> Event:
    entries = objects(update.get("entries"))
    steps = (PlanStep(str(entry.get("content", "")), str(entry.get("status", ""))) for entry in entries)
    return Plan(tuple(steps), raw=update, seq=seq)


def _usage(update: JsonObject, seq: int | None) -> Event:
    cost = as_object(update.get("cost")).get("amount")
    return Usage(
        _number(update, "used"),
        _number(update, "size"),
        cost if isinstance(cost, int | float) else None,
        raw=update,
        seq=seq,
    )


def _notice(update: JsonObject, seq: int | None) -> Event:
    severity = _string(update, "severity") or "info"
    return Notice(_string(update, "title") or "", severity, raw=update, seq=seq)


def _mode(update: JsonObject, seq: int | None) -> Event:
    return ModeChanged(_string(update, "currentModeId") or "", raw=update, seq=seq)


def _options(update: JsonObject, seq: int | None) -> Event:
    return OptionsChanged(tuple(objects(update.get("configOptions"))), raw=update, seq=seq)


def _commands(update: JsonObject, seq: int | None) -> Event:
    names = (str(command.get("name")) for command in objects(update.get("availableCommands")))
    return CommandsChanged(tuple(names), raw=update, seq=seq)


def _info(update: JsonObject, seq: int | None) -> Event:
    """The end of another client's turn, the end of a replay, or a change of the session's facts."""
    facts = own_meta(update)
    state = _string(facts, "state")
    if "caughtUp" in facts:
        return CaughtUp(state or "", raw=update, seq=seq)
    if state == "interrupted":
        return TurnEnded("error", INTERRUPTED, own=False, raw=update, seq=seq)
    if isinstance(facts.get("error"), dict):
        return TurnEnded("error", str(facts["error"].get("message")), own=False, raw=update, seq=seq)
    if "stopReason" in facts:
        return TurnEnded(str(facts["stopReason"]), own=False, raw=update, seq=seq)
    return InfoChanged(_string(update, "title"), state, raw=update, seq=seq)


def _string(holder: JsonObject, name: str) -> str | None:
    value = holder.get(name)
    return value if isinstance(value, str) else None


def _number(holder: JsonObject, name: str) -> int | None:
    value = holder.get(name)
    return value if isinstance(value, int) else None


_READERS: dict[str, Callable[[JsonObject, int | None], Event]] = {
    "agent_message_chunk": _text,
    "agent_thought_chunk": _thought,
    "user_message_chunk": _user_message,
    "tool_call": _tool_started,
    "tool_call_update": _tool_updated,
    "plan": _plan,
    "usage_update": _usage,
    "notice": _notice,
    "current_mode_update": _mode,
    "config_option_update": _options,
    "available_commands_update": _commands,
    "session_info_update": _info,
}
