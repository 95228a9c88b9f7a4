"""Reads the latest state from the end of a stored journal, once, when a session hub is made."""

from __future__ import annotations

from dataclasses import dataclass, field

from dragoman.bridge import limits
from dragoman.gateway.delivery import events, transcript
from dragoman.gateway.json_types import JsonObject, as_object, own_meta
from dragoman.gateway.ports.store import Store
from dragoman.gateway.session.updates import LATEST
from dragoman.wire.errors import Malformed

PAGE = 2000
_KINDS = (b'"queue"', b'"offered"', b'"turn_ended"')
_MARKS = tuple(f'"sessionUpdate":"{kind}"'.encode() for kind in LATEST)


@dataclass
class Restored:
    state: JsonObject = field(default_factory=dict)
    """The last update of each kind that replaces earlier ones, and the agent's last offer."""
    queue: list[JsonObject] | None = None
    stopped: bool = False
    """A turn was cancelled after the queue was written, in a process without the queue, or events are damaged."""
    message_ids: list[str] = field(default_factory=list)
    """Newest first."""


async def restore_state(store: Store, session_id: str) -> Restored:
    """Read the journal backwards, up to `LOOK_BACK_EVENTS` and `LOOK_BACK_BYTES`."""
    recalled = Restored()
    before = await store.last_seq(session_id) + 1
    seen = size = 0
    while before > 1 and seen < limits.LOOK_BACK_EVENTS and size < limits.LOOK_BACK_BYTES:
        rows = await store.read_before(session_id, before, PAGE)
        if not rows:
            break
        for row in reversed(rows):
            # Damaged events may include queued messages that were sent: holding one is better than sending it twice.
            recalled.stopped |= row.damaged and recalled.queue is None
            for event in reversed(row.events()):
                _see(recalled, event)
            seen += row.count
            size += len(row.data)
        before = rows[0].first_seq
    if recalled.queue is not None:  # messages among the events were sent, even if the last queue has them
        sent = set(recalled.message_ids)
        recalled.queue = [each for each in recalled.queue if each.get("clientMessageId") not in sent]
    return recalled


def _see(recalled: Restored, event: bytes) -> None:
    tag = event[:1]
    if tag == events.RECORD:
        _see_record(recalled, event)
    elif tag == events.PROMPT:
        update = transcript.read_update(event[1:]) or {}
        message_id = own_meta(update).get("clientMessageId")
        if isinstance(message_id, str) and len(recalled.message_ids) < limits.REMEMBERED_MESSAGES:
            recalled.message_ids.append(message_id)
    elif any(mark in event for mark in _MARKS):
        update = transcript.read_update(event[1:]) or {}
        kind = str(update.get("sessionUpdate"))
        if kind in LATEST:
            recalled.state.setdefault(kind, update)


def _see_record(recalled: Restored, event: bytes) -> None:
    if not any(kind in event[:40] for kind in _KINDS):
        return
    try:
        record = events.read_record(event)
    except Malformed:
        return
    if record.get("dragoman") == "offered":
        recalled.state.setdefault("offered", record)
    elif record.get("dragoman") == "turn_ended":
        recalled.stopped |= recalled.queue is None and record.get("stopReason") == "cancelled"
    elif recalled.queue is None:
        queue = record.get("queue")
        recalled.queue = [as_object(each) for each in queue] if isinstance(queue, list) else []
