"""The current state of sessions, asked of their owners; the store alone knows only their last turn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dragoman.client import DragomanError, connect
from dragoman.gateway.ownership.entries import RUNNING_STATES, examine
from dragoman.gateway.ports.store import Owner, SessionRecord, Store

OWNER_TIMEOUT = 3.0
"""Seconds that an owner has to report the states of its sessions."""
SHORT = 12
"""Characters of an id in a table, `dgm_` included."""


@dataclass(frozen=True, slots=True)
class View:
    """A session and its current state."""

    record: SessionRecord
    state: str
    address: str | None = None
    """Where the owner listens; None if the session has no owner."""

    @property
    def live(self) -> bool:
        return self.address is not None

    @property
    def words(self) -> str:
        return self.state.replace("_", " ")

    def as_json(self) -> dict[str, Any]:
        record = self.record
        return {
            "id": record.id,
            "title": record.title,
            "agent": record.agent,
            "cwd": record.cwd,
            "state": self.state,
            "live": self.live,
            "createdAt": record.created_at,
            "updatedAt": record.updated_at,
            "events": record.last_seq - record.first_seq + 1,
            "agentSessionId": record.agent_session_id,
            "forkedFrom": record.forked_from,
        }


async def look(store: Store, records: Iterable[SessionRecord]) -> list[View]:
    """Each session with its current state, in the order given."""
    examined, holders = await examine(store, list(records))
    wanted: dict[str, set[str]] = {}
    for session_id, owner in holders.items():
        wanted.setdefault(owner.address, set()).add(session_id)
    answers = await asyncio.gather(*(_ask(address, ids) for address, ids in wanted.items()))
    states = {key: state for answer in answers for key, state in answer.items()}
    return [_view(record, holders.get(record.id), states) for record in examined]


def _view(record: SessionRecord, owner: Owner | None, states: dict[str, str]) -> View:
    if owner is not None:
        return View(record, states.get(record.id, "not answering"), owner.address)
    # The owner is gone: a turn that ran in it is over.
    return View(record, "interrupted" if record.state in RUNNING_STATES else record.state)


async def _ask(address: str, ids: set[str]) -> dict[str, str]:
    """The states of these sessions as their owner reports them; sessions not reported in time are left out."""
    found: dict[str, str] = {}
    try:
        async with asyncio.timeout(OWNER_TIMEOUT), connect(address.removeprefix("unix:")) as owner:
            async for info in owner.sessions():
                if info.id in ids:
                    found[info.id] = info.state
                if len(found) == len(ids):
                    break
    except (DragomanError, TimeoutError):
        pass  # shown as "not answering"
    return found


def ago(time: str, now: datetime | None = None) -> str:
    """`5 min ago`, for a time as the store writes it."""
    try:
        then = datetime.fromisoformat(time)
    except ValueError:
        return time  # an agent's own list may hold any text
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    seconds = max(0.0, ((now or datetime.now(UTC)) - then).total_seconds())
    for size, unit in ((86400 * 365, "years"), (86400, "days"), (3600, "h"), (60, "min"), (1, "s")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit[:-1] if count == 1 and len(unit) > 3 else unit} ago"
    return "now"


def short_ids(ids: list[str]) -> dict[str, str]:
    """The beginnings of the ids, long enough to be unique among them."""
    length = SHORT
    while len({session_id[:length] for session_id in ids}) < len(set(ids)):
        length += 2
    return {session_id: session_id[:length] for session_id in ids}
