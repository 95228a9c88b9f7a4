"""The directory of sessions, in this process's memory; with a journal it is in the store (`directory.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Unpack

from dragoman.gateway.ids import new_session_id
from dragoman.gateway.json_types import JsonObject
from dragoman.gateway.ownership.entries import SessionEntry, SessionEntryPage, read_info
from dragoman.gateway.ports.store import BadCursor, HeldElsewhere

if TYPE_CHECKING:
    from dragoman.gateway.session.session import Session


class Wanted(TypedDict, total=False):
    """Which sessions of the directory to list; all members are optional."""

    cwd: str | None
    agent: str | None
    cursor: str | None
    query: str | None
    limit: int


class Directory:
    """For `sessions.journal = false`: one page, one process, nothing survives."""

    def __init__(self) -> None:
        self._known: dict[str, SessionEntry] = {}

    async def create(self, session: Session, original: Session | None, before: int | None = None) -> None:
        """Add a new session; a fork begins with the history of its original, up to the event `before`."""
        await self.free_agent_id(session.agent_name, session.agent_session_id)
        self._known[session.id] = SessionEntry(
            id=session.id,
            agent=session.agent_name,
            cwd=session.cwd,
            agent_session_id=session.agent_session_id,
        )

    async def get(self, session_id: str) -> SessionEntry | None:
        return self._known.get(session_id)

    async def list(self, **wanted: Unpack[Wanted]) -> SessionEntryPage:
        cwd, agent, query = wanted.get("cwd"), wanted.get("agent"), wanted.get("query")
        if wanted.get("cursor") is not None:
            raise BadCursor("Unknown cursor: this list has only one page")
        found = [
            kept
            for kept in self._known.values()
            if (agent is None or kept.agent == agent)
            and (cwd is None or kept.cwd == cwd)
            and (
                not query
                or any(query.lower() in str(each).lower() for each in (kept.title, kept.cwd, kept.id))
            )
        ]
        return SessionEntryPage(sorted(found, key=lambda kept: kept.updated_at or "", reverse=True))

    async def add_listed(self, agent: str, info: JsonObject) -> None:
        """Add or update a session from an agent's own list; its id stays the same from then on (G-042)."""
        asid = str(info["sessionId"])
        kept = self._find(agent, asid)
        if kept is None:
            kept = SessionEntry(
                id=new_session_id(), agent=agent, cwd=str(info.get("cwd", "")), agent_session_id=asid
            )
            self._known[kept.id] = kept
        kept.title, kept.updated_at, kept.info = read_info(info)

    async def own(self, session: Session) -> HeldElsewhere | None:
        """Become the owner of a session; returns the owner if another living process is."""
        return None

    async def release(self, session: Session) -> None: ...

    async def claim_journal(self, session: Session) -> None:
        """Try again to acquire the lease for a session that runs without storing events."""

    async def delete(self, session_id: str) -> None:
        self._known.pop(session_id, None)

    async def free_agent_id(self, agent: str, agent_session_id: str) -> None:
        """Remove the id from a session that had it: the agent issued it again, for another session (G-040)."""
        kept = self._find(agent, agent_session_id)
        if kept is not None:
            kept.agent_session_id = None

    def _find(self, agent: str, asid: str) -> SessionEntry | None:
        return next(
            (kept for kept in self._known.values() if kept.agent == agent and kept.agent_session_id == asid),
            None,
        )
