"""The latest decisions about tool calls in a journal: by a rule, or by a person."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.gateway.delivery import events
from dragoman.gateway.json_types import JsonObject, as_object
from dragoman.gateway.ports.store import Row, Store
from dragoman.wire.errors import Malformed
from dragoman.wire.timestamps import timestamp

LOOKED_AT = 2000
"""Events at the end of a journal in which decisions are looked for."""
ASKED, APPROVED, DECIDED = "question", "approval", "decision"


async def recent_decisions(store: Store, session_id: str) -> list[JsonObject]:
    """The latest decisions of a session, the newest first."""
    last = await store.last_seq(session_id)
    asked: dict[object, JsonObject] = {}
    found: list[JsonObject] = []
    for seq, time, record in _records(await store.read_before(session_id, last + 1, LOOKED_AT)):
        if record.get("dragoman") == ASKED:
            asked[record.get("id")] = record
        elif record.get("dragoman") == DECIDED:
            question = asked.pop(record.get("id"), {})
            found.append({"session": session_id, "seq": seq, "time": time, **_shown(record, question)})
    return found[::-1]


async def records_of_call(store: Store, session_id: str, call: str) -> list[JsonObject]:
    """What the journal says about the decisions on one tool call, the oldest first."""
    ids: set[object] = set()
    found: list[JsonObject] = []
    async for row in events.rows(store, session_id):
        for seq, time, record in _records([row]):
            kind, about = record.get("dragoman"), as_object(record.get("toolCall")).get("toolCallId")
            if kind not in (ASKED, APPROVED, DECIDED) or not (about == call or record.get("id") in ids):
                continue
            if record.get("id") is not None:
                ids.add(record["id"])
            rest = {name: value for name, value in record.items() if name != "dragoman"}
            found.append({"kind": kind, "seq": seq, "time": time, **rest})
    return found


def _records(rows: list[Row]) -> Iterator[tuple[int, str, JsonObject]]:
    for row in rows:
        for seq, event in enumerate(() if row.damaged else row.events(), row.first_seq):
            if event[:1] != events.RECORD:
                continue
            try:
                yield seq, timestamp(row.ts), events.read_record(event)
            except Malformed:
                continue


def _shown(record: JsonObject, question: JsonObject) -> JsonObject:
    tool = as_object(record.get("toolCall")) or as_object(question.get("toolCall"))
    by_rule = "decision" in record
    shown: JsonObject = {
        "call": _text(tool.get("toolCallId")),
        "title": _text(tool.get("title")) or _text(tool.get("kind")) or "a tool call",
        "decision": _word(record, question),
        "rule": _text(record.get("by")) if by_rule else None,
        "by": None if by_rule else _text(record.get("identity")) or _text(record.get("by")),
        "why": _text(record.get("why")),
        "act": as_object(record.get("act")) or None,
        "approvals": record.get("approvals"),
    }
    return {name: value for name, value in shown.items() if value is not None}


def _word(record: JsonObject, question: JsonObject) -> str:
    if record.get("decision") in ("allow", "deny"):
        return str(record["decision"])
    chosen = as_object(record.get("outcome")).get("optionId")
    offered = question.get("options")
    for option in map(as_object, offered if isinstance(offered, list) else []):
        if chosen is not None and option.get("optionId") == chosen:
            return "allow" if str(option.get("kind")).startswith("allow") else "deny"
    return "cancelled" if chosen is None else "answered"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
