"""How the tool calls of a session were decided, read from its journal."""

from __future__ import annotations

from dataclasses import dataclass, field

from dragoman.gateway.delivery import events
from dragoman.gateway.delivery.transcript import read_update
from dragoman.gateway.json_types import JsonObject, as_object
from dragoman.gateway.ports.store import Store
from dragoman.wire.errors import Malformed
from dragoman.wire.timestamps import timestamp

_PERSON = "user"


@dataclass(slots=True, eq=False)
class Decided:
    """One question or decision about a tool call."""

    tool: JsonObject
    question: JsonObject = field(default_factory=dict)
    """The record of the question, with `time` and `seq`; empty if no person was asked."""
    approvals: list[JsonObject] = field(default_factory=list)
    decision: JsonObject = field(default_factory=dict)
    """The record of the decision; empty while the question is open."""
    known: JsonObject = field(default_factory=dict)
    """The tool call with what was told of it before."""

    @property
    def call(self) -> str:
        return str(self.tool.get("toolCallId") or "")

    @property
    def title(self) -> str:
        return str(self.tool.get("title") or self.tool.get("kind") or "tool call")

    @property
    def policy(self) -> JsonObject:
        """Rule, why, level and act of what the rules said."""
        return self.question or self.decision

    @property
    def word(self) -> str:
        """What was decided: allowed, denied, rejected, cancelled, or open."""
        if not self.decision:
            return "open"
        if self.decision.get("decision") in ("allow", "deny"):
            return {"allow": "allowed", "deny": "denied"}[str(self.decision["decision"])]
        outcome = as_object(self.decision.get("outcome"))
        if outcome.get("outcome") != "selected":
            return "cancelled"
        offered = self.question.get("options")
        kinds = {
            as_object(option).get("optionId"): str(as_object(option).get("kind"))
            for option in (offered if isinstance(offered, list) else [])
        }
        kind = kinds.get(outcome.get("optionId"), "")
        return (
            "allowed" if kind.startswith("allow") else "rejected" if kind.startswith("reject") else "answered"
        )

    @property
    def by(self) -> str:
        """Who decided, in words."""
        by = str(self.decision.get("by") or "")
        if "decision" in self.decision:
            return "the built-in rule" if by == "built in" else f"the rule {by}"
        identity, client = self.decision.get("identity"), self.decision.get("client")
        who = f"{identity}" if identity else ""
        who += f" in {client}" if client and client != identity else ""
        return (who or "a person") if by == _PERSON else f"{by} ({who})" if who else by

    def records(self) -> list[JsonObject]:
        """Question, approvals and decision as they are in the journal, each with its `kind`."""
        placed = [record for record in (self.question, *self.approvals, self.decision) if record]
        return [
            {"kind": record["dragoman"], **{name: record[name] for name in record if name != "dragoman"}}
            for record in placed
        ]


class DecisionReader:
    """Takes the records of a journal in their order; remembers open questions, of which there are few."""

    def __init__(self) -> None:
        self._open: dict[str, Decided] = {}

    def see(self, record: JsonObject, seq: int, time: str) -> Decided | None:
        """The question or decision that a record is about; None if it is about none."""
        kind, found = record.get("dragoman"), None
        placed = {**record, "seq": seq, "time": time}
        asked = self._open.get(str(record.get("id")))
        if kind == "question" and "state" not in record:
            found = self._open[str(record.get("id"))] = Decided(as_object(record.get("toolCall")), placed)
        elif kind == "approval" and asked is not None:
            asked.approvals.append(placed)
            found = asked
        elif kind == "decision":
            found = self._open.pop(str(record.get("id")), None) or Decided(as_object(record.get("toolCall")))
            found.decision = placed
        elif kind == "turn_ended":
            self._open.clear()
        return found

    def note(self, event: bytes) -> JsonObject | None:
        """A decision in words, with its call; None for any other record."""
        try:
            decided = self.see(events.read_record(event), 0, "")
        except Malformed:
            return None
        if decided is None or not decided.decision:
            return None
        words = f"{decided.word} by {decided.by}"
        return {"toolCallId": decided.call, "title": decided.title, "decided": words}


async def decisions_of(store: Store, session_id: str, call: str = "", *, after: int = 0) -> list[Decided]:
    """What was decided about the tool calls of a session after an event, oldest first; with `call` about that one."""
    reader, found = DecisionReader(), list[Decided]()
    told: JsonObject = {}
    async for row in events.rows(store, session_id, after):
        for seq, event in enumerate(row.events() if not row.damaged else (), row.first_seq):
            if event[:1] != events.RECORD:
                update = read_update(event[1:]) or {} if call else {}
                if call and update.get("toolCallId") == call:
                    told |= {name: value for name, value in update.items() if value is not None}
                continue
            try:
                decided = reader.see(events.read_record(event), seq, timestamp(row.ts))
            except Malformed:
                continue
            if decided is not None and call in ("", decided.call) and decided not in found:
                decided.known = {**told, **decided.tool}
                found.append(decided)
    return found
