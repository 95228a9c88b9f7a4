"""The directory of sessions in this process's memory, used without a journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.gateway.ids import new_session_id
from dragoman.gateway.json_types import JsonObject
from dragoman.gateway.ownership.entries import SessionEntry, SessionEntryPage, read_info
from dragoman.gateway.ports.store import LIST_PAGE, BadCursor, HeldElsewhere

if TYPE_CHECKING:
    from dragoman.gateway.session.session import Session


class MemoryDirectory:
    """For `sessions.journal = false`: one page, one process, nothing survives."""

    def __init__(self) -> None:
        self._known: dict[str, SessionEntry] = {}

    async def create(self, session: Session, original: Session | None, before: int | None = None) -> None:
        await self.free_agent_id(session.agent_name, session.agent_session_id)
        self._known[session.id] = SessionEntry(
            id=session.id,
            agent=session.agent_name,
            cwd=session.cwd,
            agent_session_id=session.agent_session_id,
        )

    async def get(self, session_id: str) -> SessionEntry | None:
        return self._known.get(session_id)

    async def list(
        self,
        *,
        cwd: str | None,
        agent: str | None,
        cursor: str | None,
        query: str | None = None,
        limit: int = LIST_PAGE,
    ) -> SessionEntryPage:
        if cursor is not None:
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
        asid = str(info["sessionId"])
        kept = self._find(agent, asid)
        if kept is None:
            kept = SessionEntry(
                id=new_session_id(), agent=agent, cwd=str(info.get("cwd", "")), agent_session_id=asid
            )
            self._known[kept.id] = kept
        kept.title, kept.updated_at, kept.info = read_info(info)

    async def own(self, session: Session) -> HeldElsewhere | None:
        return None

    async def release(self, session: Session) -> None:
        pass

    async def claim_journal(self, session: Session) -> None:
        pass

    async def delete(self, session_id: str) -> None:
        self._known.pop(session_id, None)

    async def free_agent_id(self, agent: str, agent_session_id: str) -> None:
        kept = self._find(agent, agent_session_id)
        if kept is not None:
            kept.agent_session_id = None

    def _find(self, agent: str, asid: str) -> SessionEntry | None:
        return next(
            (kept for kept in self._known.values() if kept.agent == agent and kept.agent_session_id == asid),
            None,
        )
