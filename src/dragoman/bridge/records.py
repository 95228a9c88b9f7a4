"""Records of a journal (questions, decisions, ends of turns) as fields of bridge events: a table by their kind."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.bridge.errors import friendly
from dragoman.bridge.message import Message
from dragoman.gateway.json_types import JsonObject, as_object

Fields = JsonObject
CANCELLED = {"outcome": "cancelled"}


def translate_record(record: JsonObject) -> Fields:
    reader = RECORDS.get(str(record.get("dragoman")))
    return reader(record) if reader is not None else {"type": "unknown_update", "raw": record}


def _question(record: JsonObject) -> Fields:
    if "state" in record:  # as it was written before questions had ids
        return {
            "type": "permission_resolved",
            "requestId": None,
            "outcome": CANCELLED,
            "by": record.get("by"),
        }
    return {
        "type": "permission_request",
        "requestId": record.get("id"),
        "toolCall": record.get("toolCall") or {},
        "options": record.get("options") or [],
    }


def _decision(record: JsonObject) -> Fields:
    fields: Fields = {
        "type": "permission_resolved",
        "requestId": record.get("id"),
        "outcome": record.get("outcome") or CANCELLED,
        "by": record.get("by") or "user",
    }
    call = as_object(record.get("toolCall")).get("toolCallId")
    return fields | _given(toolCallId=call, client=record.get("client"))


def _elicitation(record: JsonObject) -> Fields:
    asked = _given(**{name: record.get(name) for name in ("requestedSchema", "url")})
    return {
        "type": "elicitation_request",
        "requestId": record.get("id"),
        "mode": record.get("mode") or "form",
        "message": record.get("message") or "",
        **asked,
    }


def _elicitation_decision(record: JsonObject) -> Fields:
    return {
        "type": "elicitation_resolved",
        "requestId": record.get("id"),
        "action": record.get("action") or "cancel",
        "by": record.get("by") or "user",
        **_given(client=record.get("client")),
    }


def _terminal(record: JsonObject) -> Fields:
    return {
        "type": "terminal_output",
        "terminalId": record.get("terminalId"),
        "output": record.get("output", ""),
        **_given(exitStatus=record.get("exitStatus"), truncated=record.get("truncated")),
    }


def _setting(record: JsonObject) -> Fields:
    """What was chosen; what came of it follows as the agent or the gateway tells it."""
    if record.get("method") == "session/set_model":
        return {"type": "model_changed", "modelId": record.get("modelId")}
    mode = record.get("method") == "session/set_mode"
    name, value = ("mode", "modeId") if mode else (record.get("configId"), "value")
    return {"type": "setting_chosen", "name": name, "value": record.get(value)}


def _turn_ended(record: JsonObject) -> Fields:
    fields: Fields = {"type": "turn_complete", "stopReason": record.get("stopReason")}
    error = record.get("error")
    return fields if error is None else {**fields, "error": friendly(as_object(error)).as_fields()}


def _agent_exited(record: JsonObject) -> Fields:
    return {
        "type": "agent_exited",
        "message": record.get("message") or "",
        "expected": record.get("expected") is True,
    }


def _revived(record: JsonObject) -> Fields:
    return {"type": "agent_revived", "rung": record.get("rung") or ""}


def _parked(record: JsonObject) -> Fields:
    return {"type": "session_parked"}


def _notice(record: JsonObject) -> Fields:
    return {
        "type": "notice",
        "title": record.get("title") or "",
        "severity": record.get("severity") or "warning",
    }


def _unkept(record: JsonObject) -> Fields:
    title = f"{record.get('events')} events before this could not be saved: they cannot be shown again."
    return {"type": "notice", "title": title, "severity": "error"}


def _queue(record: JsonObject) -> Fields:
    queue = [Message.kept(as_object(each)).as_shown() for each in record.get("queue") or ()]
    return {"type": "queue_changed", "queue": queue}


def _offered(record: JsonObject) -> Fields:
    return {
        "type": "session_info",
        **_given(modes=record.get("modes"), configOptions=record.get("configOptions")),
    }


def _given(**fields: object) -> Fields:
    return {name: value for name, value in fields.items() if value is not None}


RECORDS: dict[str, Callable[[JsonObject], Fields]] = {
    "question": _question,
    "decision": _decision,
    "elicitation": _elicitation,
    "elicitation_decision": _elicitation_decision,
    "terminal_created": _terminal,
    "terminal_output": _terminal,
    "setting": _setting,
    "turn_ended": _turn_ended,
    "agent_exited": _agent_exited,
    "revived": _revived,
    "parked": _parked,
    "notice": _notice,
    "unkept": _unkept,
    "queue": _queue,
    "offered": _offered,
}
