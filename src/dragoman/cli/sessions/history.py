"""Reads a session's turns, last events and open question from its journal, in one pass."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from dragoman.cli.terminal.narrator import describe_tool
from dragoman.cli.terminal.screen import one_line
from dragoman.client.reading import text_of
from dragoman.gateway.delivery import events
from dragoman.gateway.delivery.conversation import undone
from dragoman.gateway.delivery.transcript import read_update
from dragoman.gateway.json_types import JsonObject, as_object, own_meta
from dragoman.gateway.ports.store import Row, Store
from dragoman.wire.errors import Malformed
from dragoman.wire.json_types import objects
from dragoman.wire.timestamps import second

KEPT_TURNS = 10
TAIL = 400
"""Events from which the last few lines are made; a streamed sentence is dozens."""
SHOWN_EVENTS = 12

TOLD = "you, as the agent tells it"
_SPEAKERS = {
    "user_message_chunk": "you",
    "agent_message_chunk": "agent",
    "agent_thought_chunk": "thought",
}


@dataclass(slots=True)
class TurnFacts:
    number: int
    prompt: str
    time: str
    outcome: str | None = None
    """Stop reason or error; None while it runs."""
    event: int = 0
    undone: bool = False


@dataclass(slots=True)
class History:
    turns: deque[TurnFacts] = field(default_factory=lambda: deque(maxlen=KEPT_TURNS))
    turn_count: int = 0
    question: JsonObject | None = None
    lost: list[tuple[int, int]] = field(default_factory=list)
    """The first and last number of each range of events that are damaged or missing."""
    last_event_ms: int | None = None
    silent_seconds: float = 0.0
    """How long the agent had been silent when the last event, a `silent` state, was written; else 0."""
    _tail: deque[tuple[int, bytes]] = field(default_factory=lambda: deque(maxlen=TAIL))

    def quiet_for(self) -> float | None:
        """Seconds without activity; None if there are no events."""
        if self.last_event_ms is None:
            return None
        return max(0.0, time.time() * 1000 - self.last_event_ms) / 1000 + self.silent_seconds

    def last_events(self) -> list[JsonObject]:
        """The last events as lines; consecutive chunks of one speaker are one line."""
        lines: list[JsonObject] = []
        titles: dict[str, str] = {}
        for seq, event in self._tail:
            who, text = _summary(event, titles)
            if not text:
                continue
            if lines and who in (TOLD, *_SPEAKERS.values()) and lines[-1]["who"] == who:
                lines[-1] = {"seq": seq, "who": who, "text": lines[-1]["text"] + text}
            else:
                lines.append({"seq": seq, "who": who, "text": text})
        return [{**line, "text": one_line(line["text"])} for line in lines[-SHOWN_EVENTS:]]

    def as_json(self) -> dict[str, Any]:
        return {
            "turns": [
                {
                    "number": t.number,
                    "prompt": t.prompt,
                    "time": t.time,
                    "outcome": t.outcome,
                    **({"undone": True} if t.undone else {}),
                }
                for t in self.turns
            ],
            "turnCount": self.turn_count,
            "question": self.question,
            "lost": [{"firstSeq": first, "lastSeq": last} for first, last in self.lost],
            "lastEvents": self.last_events(),
        }


async def read_history(store: Store, session_id: str) -> History:
    history = History()
    async for row in events.rows(store, session_id):
        if row.damaged:
            _note_lost(history, row)
        for seq, event in enumerate(row.events(), row.first_seq):
            _note(history, seq, row.ts, event)
    return history


def _note_lost(history: History, row: Row) -> None:
    """Record lost events; how a running turn ended is then not known, since its end may be among them."""
    history.lost.append((row.first_seq, row.last_seq))
    words = events.lost_notice(row.first_seq, row.last_seq)
    history._tail.append((row.last_seq, events.record("notice", title=words)))
    if history.turns and history.turns[-1].outcome is None:
        history.turns[-1].outcome = "not known"


def _note(history: History, seq: int, ts: int, event: bytes) -> None:
    history._tail.append((seq, event))
    history.last_event_ms, history.silent_seconds = ts, 0.0
    tag = event[:1]
    if tag == events.RECORD:
        _note_record(history, event)
    elif tag == events.PROMPT:
        _note_prompt(history, seq, ts, event)
    elif tag == events.STATE and b'"silent"' in event:
        seconds = own_meta(read_update(event[1:]) or {}).get("seconds")
        history.silent_seconds = float(seconds) if isinstance(seconds, int | float) else 0.0


def _note_prompt(history: History, seq: int, ts: int, event: bytes) -> None:
    """Each part of a prompt is an event of its own; the first begins the turn."""
    if history.turns and history.turns[-1].outcome is None:
        return
    text = text_of((read_update(event[1:]) or {}).get("content"))
    begun = f"{second(ts // 1000)}Z"
    history.turn_count += 1
    history.turns.append(TurnFacts(history.turn_count, one_line(text, 60), begun, event=seq))


def _note_record(history: History, event: bytes) -> None:
    record = _record(event)
    kind = record.get("dragoman")
    if kind == "question" and "state" not in record:
        history.question = {"toolCall": record.get("toolCall"), "options": record.get("options")}
        if isinstance(record.get("approval"), dict):
            history.question["approval"] = record["approval"]
    elif kind == "approval" and history.question is not None:
        wanted = as_object(history.question.get("approval"))
        said = {name: record.get(name) for name in ("by", "role", "at", "client") if name in record}
        history.question["approval"] = {**wanted, "said": [*objects(wanted.get("said")), said]}
    elif kind in ("decision", "question", "turn_ended"):
        history.question = None
    elif kind == undone.RECORD:
        gone = undone.Undone.read(record)
        for turn in history.turns:
            turn.undone = turn.event in gone
    if kind == "turn_ended" and history.turns:
        error = as_object(record.get("error"))
        reason = record.get("stopReason")
        history.turns[-1].outcome = str(reason) if reason else one_line(f"error: {error.get('message')}", 200)


def _record(event: bytes) -> JsonObject:
    try:
        return events.read_record(event)
    except Malformed:
        return {}


def _summary(event: bytes, titles: dict[str, str]) -> tuple[str, str]:
    """The speaker and text of an event; `titles` holds the titles of tool calls by id."""
    if event[:1] == events.RECORD:
        return _record_summary(_record(event))
    update = read_update(event[1:]) or {}
    kind = str(update.get("sessionUpdate"))
    if kind in _SPEAKERS:
        told = kind == "user_message_chunk" and event[:1] != events.PROMPT
        return TOLD if told else _SPEAKERS[kind], text_of(update.get("content"))
    call = str(update.get("toolCallId"))
    if update.get("title"):
        titles[call] = str(update["title"])
    if kind == "tool_call":
        return "tool", describe_tool(update)
    if kind == "tool_call_update" and update.get("status") in ("completed", "failed"):
        return "tool", f"{titles.get(call, call)} {update['status']}"
    return "", ""


def _record_summary(record: JsonObject) -> tuple[str, str]:
    kind = record.get("dragoman")
    if kind == "question":
        return "question", str(record.get("state") or describe_tool(as_object(record.get("toolCall"))))
    if kind == "approval":
        return "approval", f"by {record.get('by')}"
    if kind == "decision":
        outcome = as_object(record.get("outcome"))
        chosen = record.get("decision") or outcome.get("optionId") or outcome.get("outcome")
        return "decision", f"{chosen} by {record.get('by')}"
    if kind == "turn_ended":
        return "turn", str(record.get("stopReason") or as_object(record.get("error")).get("message"))
    if kind == "agent_exited":
        return "process", "agent ended" if record.get("expected") is True else str(record.get("message"))
    if kind == "notice":
        return "notice", str(record.get("title"))
    if kind == "unkept":
        return "notice", events.unkept_notice(record)
    if kind == undone.RECORD:
        return "rewind", "undone" if record.get("undo") else f"to before message {record.get('message')}"
    return "", ""
