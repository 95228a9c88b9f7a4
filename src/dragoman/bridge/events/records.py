"""Translates journal records (questions, decisions, ends of turns) into fields of bridge events, by a table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from dragoman.bridge.errors import friendly
from dragoman.bridge.events import shapes
from dragoman.bridge.message import Message
from dragoman.gateway.delivery import events
from dragoman.gateway.delivery.conversation.undone import Undone
from dragoman.gateway.json_types import JsonObject, as_object

Fields = JsonObject
CANCELLED = {"outcome": "cancelled"}


def translate_record(record: JsonObject) -> Fields:
    reader = RECORDS.get(str(record.get("dragoman")))
    made = reader(record) if reader is not None else None
    return made if made is not None else {"type": "unknown_update", "raw": record}


def _question(record: JsonObject) -> Fields:
    if "state" in record:  # the former format, before questions had ids
        return {
            "type": "permission_resolved",
            "requestId": None,
            "outcome": CANCELLED,
            "by": shapes.text(record.get("by")),
        }
    return {
        "type": "permission_request",
        "requestId": shapes.text(record.get("id")),
        "toolCall": shapes.tool_question(as_object(record.get("toolCall"))),
        "options": shapes.permission_options(record.get("options")),
        **_given(
            approval=record["approval"] if isinstance(record.get("approval"), dict) else None,
            facts=_facts(record),
            remember=record["remember"] if isinstance(record.get("remember"), dict) else None,
        ),
    }


def _facts(record: JsonObject) -> Fields | None:
    """Why it is asked, and what the rules see of the call."""
    act = record.get("act")
    if not isinstance(act, dict):
        return None
    commands = [as_object(one) for one in _list(act.get("commands"))]
    return {
        "why": shapes.text(record.get("why")),
        "commands": [
            " ".join(map(str, [*_list(one.get("words")), *_list(one.get("redirects"))])) for one in commands
        ],
        "paths": [as_object(path) for path in _list(act.get("paths"))],
        "hosts": [str(host) for host in _list(act.get("hosts"))],
        **_given(opaque=_name(act.get("opaque"))),
    }


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _approval(record: JsonObject) -> Fields:
    return {
        "type": "permission_approved",
        "requestId": shapes.text(record.get("id")),
        "by": shapes.text(record.get("by")),
        "at": shapes.text(record.get("at")),
        **_given(client=_name(record.get("client"))),
    }


def _decision(record: JsonObject) -> Fields:
    fields: Fields = {
        "type": "permission_resolved",
        "requestId": _name(record.get("id")),
        "outcome": _outcome(record.get("outcome")),
        "by": shapes.text(record.get("by")) or "user",
    }
    call = as_object(record.get("toolCall")).get("toolCallId")
    approvals = record.get("approvals")
    return fields | _given(
        toolCallId=_name(call),
        client=_name(record.get("client")),
        remembered=record["remembered"] if isinstance(record.get("remembered"), dict) else None,
        identity=_name(record.get("identity")),
        approvals=approvals if isinstance(approvals, list) else None,
    )


def _outcome(told: object) -> JsonObject:
    """The outcome if it selects an option, otherwise `cancelled`."""
    option = shapes.name(as_object(told).get("optionId"))
    if as_object(told).get("outcome") != "selected" or not isinstance(option, str):
        return CANCELLED
    return {**as_object(told), "optionId": option}


def _elicitation(record: JsonObject) -> Fields:
    schema = record.get("requestedSchema")
    return {
        "type": "elicitation_request",
        "requestId": shapes.text(record.get("id")),
        "mode": shapes.one_of({"form", "url"}, "form")(record.get("mode")),
        "message": shapes.text(record.get("message")),
        **_given(requestedSchema=schema if isinstance(schema, dict) else None, url=_name(record.get("url"))),
    }


def _elicitation_decision(record: JsonObject) -> Fields:
    return {
        "type": "elicitation_resolved",
        "requestId": shapes.text(record.get("id")),
        "action": shapes.one_of({"accept", "decline", "cancel"}, "cancel")(record.get("action")),
        "by": shapes.text(record.get("by")) or "user",
        **_given(client=_name(record.get("client"))),
    }


def _terminal(record: JsonObject) -> Fields | None:
    """A terminal's output; None without a usable id, as clients write these records for their own terminals too."""
    terminal = _name(record.get("terminalId"))
    if terminal is None:
        return None
    status = shapes.exit_status(record.get("exitStatus"))
    return {
        "type": "terminal_output",
        "terminalId": terminal,
        "output": shapes.text(record.get("output")),
        **_given(
            exitStatus=status if isinstance(status, dict) else None,
            truncated=True if record.get("truncated") is True else None,
        ),
    }


def _setting(record: JsonObject) -> Fields | None:
    """A chosen setting; its effect follows in events of the agent or the gateway."""
    if record.get("method") == "session/set_model":
        model = _name(record.get("modelId"))
        return None if model is None else {"type": "model_changed", "modelId": model}
    mode = record.get("method") == "session/set_mode"
    name, value = ("mode", "modeId") if mode else (record.get("configId"), "value")
    return {"type": "setting_chosen", "name": shapes.text(name), "value": record.get(value)}


def _turn_ended(record: JsonObject) -> Fields:
    fields: Fields = {"type": "turn_complete", "stopReason": _name(record.get("stopReason"))}
    error = record.get("error")
    return fields if error is None else {**fields, "error": friendly(as_object(error)).as_fields()}


def _agent_exited(record: JsonObject) -> Fields:
    return {
        "type": "agent_exited",
        "message": shapes.text(record.get("message")),
        "expected": record.get("expected") is True,
    }


def notice(usual: str, told: JsonObject) -> Fields:
    """A notice, in an update or a record; of the severity `usual` if it has none."""
    return {
        "type": "notice",
        "title": shapes.text(told.get("title")),
        "severity": shapes.one_of(shapes.SEVERITIES, usual)(told.get("severity")),
    }


def _queue(record: JsonObject) -> Fields:
    kept = record.get("queue")
    waiting = [message for message in kept if isinstance(message, dict)] if isinstance(kept, list) else []
    queue = [Message.from_stored(message).as_shown() for message in waiting]
    return {"type": "queue_changed", "queue": queue}


def _rewound(record: JsonObject) -> Fields:
    number = record.get("message")
    return {
        "type": "conversation_rewound",
        "undone": [list(pair) for pair in Undone.read(record).ranges],
        "by": shapes.text(record.get("by")),
        **_given(
            message=number if isinstance(number, int) and not isinstance(number, bool) else None,
            undo=True if record.get("undo") is True else None,
        ),
    }


def _offered(record: JsonObject) -> Fields:
    offer = {"modes": record.get("modes"), "configOptions": record.get("configOptions")}
    return {"type": "session_info", **shapes.with_offer(offer)}


def _name(value: object) -> str | None:
    name = shapes.name(value)
    return name if isinstance(name, str) else None


def _given(**fields: object) -> Fields:
    return {name: value for name, value in fields.items() if value is not None}


RECORDS: dict[str, Callable[[JsonObject], Fields | None]] = {
    "question": _question,
    "approval": _approval,
    "decision": _decision,
    "elicitation": _elicitation,
    "elicitation_decision": _elicitation_decision,
    "terminal_created": _terminal,
    "terminal_output": _terminal,
    "setting": _setting,
    "turn_ended": _turn_ended,
    "agent_exited": _agent_exited,
    "revived": lambda record: {"type": "agent_revived", "rung": shapes.text(record.get("rung"))},
    "parked": lambda record: {"type": "session_parked"},
    "notice": partial(notice, "warning"),
    "unkept": lambda record: notice("error", {"title": events.unkept_notice(record)}),
    "queue": _queue,
    "rewound": _rewound,
    "offered": _offered,
}
