"""Sessions known by id, live or not, without a store: what a process remembers of its own lifetime."""

from __future__ import annotations

from dataclasses import dataclass, field

from dragoman.gateway.ids import new_session_id
from dragoman.gateway.json_types import JsonObject


@dataclass
class Entry:
    id: str
    agent: str
    agent_session_id: str
    cwd: str
    info: JsonObject = field(default_factory=dict)
    """What the agent's own list says: title, updatedAt, `_meta`."""


class MemoryDirectory:
    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._by_agent: dict[tuple[str, str], str] = {}

    def add(self, entry: Entry) -> None:
        """An agent that issues an id again means a new session: the newest owner of the pair is listed (G-040)."""
        self._entries[entry.id] = entry
        self._by_agent[entry.agent, entry.agent_session_id] = entry.id

    def get(self, session_id: str) -> Entry | None:
        return self._entries.get(session_id)

    def remove(self, session_id: str) -> Entry | None:
        entry = self._entries.pop(session_id, None)
        if entry is not None:
            self._by_agent.pop((entry.agent, entry.agent_session_id), None)
        return entry

    def listed(self, agent: str, info: JsonObject) -> Entry:
        """A session from an agent's own list; it gets an id when first seen and keeps it (G-042)."""
        agent_session_id = str(info.get("sessionId"))
        known = self._by_agent.get((agent, agent_session_id))
        if known is None:
            entry = Entry(new_session_id(), agent, agent_session_id, str(info.get("cwd", "")))
            self.add(entry)
        else:
            entry = self._entries[known]
        entry.info = info
        return entry

    def entries(self) -> list[Entry]:
        return list(self._entries.values())
