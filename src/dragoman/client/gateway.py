"""A connected gateway: begins, resumes and lists sessions."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType

from dragoman.client.channel import Channel
from dragoman.client.connection import CAPABILITIES, Connection
from dragoman.client.errors import DragomanError
from dragoman.client.session import OnQuestion, Session
from dragoman.wire.json_types import JsonObject, objects, own_meta


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A session in the gateway's list."""

    id: str
    cwd: str
    title: str
    agent: str
    state: str
    updated_at: str
    raw: JsonObject = field(repr=False)


class Gateway:
    """Made by `connect`; all of its sessions share one connection."""

    def __init__(
        self,
        channel: Channel,
        *,
        on_question: OnQuestion | None = None,
        capabilities: JsonObject = CAPABILITIES,
        name: str = "dragoman-python",
        title: str = "Dragoman for Python",
        intercept: Callable[[bytes], bool] | None = None,
    ) -> None:
        self.connection = Connection(channel, intercept)
        self._hello = (capabilities, name, title)
        self._on_question = on_question
        self.about: JsonObject = {}
        """The gateway's answer to `initialize`."""

    @property
    def agents(self) -> list[str]:
        """The names of the agents that sessions can have."""
        names = own_meta(self.about).get("agents")
        return [str(name) for name in names] if isinstance(names, list) else []

    async def open(self) -> Gateway:
        self.about = await self.connection.open(*self._hello)
        return self

    async def aclose(self) -> None:
        """Disconnect. Sessions of a running `serve` go on, those of a child end with it."""
        await self.connection.close()

    async def __aenter__(self) -> Gateway:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def new(
        self,
        agent: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        *,
        mcp_servers: Sequence[JsonObject] = (),
        sandbox: str | None = None,
        on_question: OnQuestion | None = None,
        watch: bool = False,
    ) -> Session:
        """Begin a session with an agent of the configuration in a folder; by default both are the usual ones.

        With `watch` the session's `events` begin with its first one.
        """
        folder = _folder(cwd)
        wanted = {"agent": agent, "sandbox": sandbox}
        own = {name: value for name, value in wanted.items() if value is not None}
        params: JsonObject = {"cwd": folder, "mcpServers": list(mcp_servers)}
        if own:
            params["_meta"] = {"dragoman": own}
        return await self._begin("session/new", params, folder, on_question, watch)

    async def fork(
        self, session: Session, *, agent: str | None = None, on_question: OnQuestion | None = None
    ) -> Session:
        """Begin a session that continues a copy of this conversation, with another agent if one is given."""
        params: JsonObject = {"sessionId": session.id, "cwd": session.cwd, "mcpServers": []}
        if agent is not None:
            params["_meta"] = {"dragoman": {"agent": agent}}
        return await self._begin("session/fork", params, session.cwd, on_question)

    async def _begin(
        self, method: str, params: JsonObject, cwd: str, on_question: OnQuestion | None, watch: bool = False
    ) -> Session:
        made: list[Session] = []

        def created(result: JsonObject) -> None:  # before the first update of the session is read
            session = Session(
                self.connection, str(result.get("sessionId")), cwd, on_question or self._on_question
            )
            self.connection.sessions[session.id] = session
            session.opened(result)
            if watch:
                session.watch()
            made.append(session)

        await self.connection.call(method, params, created)
        return made[0]

    async def resume(
        self,
        id: str,
        cwd: str | os.PathLike[str] | None = None,
        *,
        after: int | None = None,
        on_question: OnQuestion | None = None,
        watch: bool = False,
    ) -> Session:
        """Continue a session, in its own folder unless `cwd` is given.

        With `after`, `Session.events` has those after that number again (0: all), then a `CaughtUp`, then what happens
        now; with `watch` only what happens now.
        """
        folder = str(cwd) if cwd is not None else (await self.find(id)).cwd
        session = self.session(id, folder, on_question)
        params: JsonObject = {}
        if after is not None:
            session.seq = after
            params["_meta"] = {"dragoman": {"afterSeq": after}}
        if watch or after is not None:
            session.watch()
        await self._attach("session/resume", session, params)
        return session

    def session(self, id: str, cwd: str, on_question: OnQuestion | None = None) -> Session:
        """A session that is not attached yet; `load` does that."""
        return Session(self.connection, id, cwd, on_question or self._on_question)

    async def load(self, session: Session) -> None:
        """Attach to a session whose `events` are read already: its whole conversation comes before this returns."""
        await self._attach("session/load", session, {})

    async def _attach(self, method: str, session: Session, more: JsonObject) -> None:
        sessions = self.connection.sessions
        former = sessions.get(session.id)
        if former is not None:
            told = f"session {session.id} was opened again here: use the later object"
            former.ended(DragomanError(told))
        sessions[session.id] = session
        params = {"sessionId": session.id, "cwd": session.cwd, "mcpServers": [], **more}
        try:
            await self.connection.call(method, params, session.opened)
        except BaseException:
            sessions.pop(session.id, None)
            raise

    async def find(self, id: str) -> SessionInfo:
        """A session of the list; raises `LookupError` if there is none of that id."""
        async for info in self.sessions():
            if info.id == id:
                return info
        raise LookupError(f"there is no session {id}: `dragoman sessions list` has them")

    async def sessions(self, cwd: str | os.PathLike[str] | None = None) -> AsyncIterator[SessionInfo]:
        """The gateway's sessions, the latest first; those of one folder, if given."""
        params: JsonObject = {} if cwd is None else {"cwd": _folder(cwd)}
        while True:
            page = await self.connection.call("session/list", params)
            for entry in objects(page.get("sessions")):
                facts = own_meta(entry)
                yield SessionInfo(
                    str(entry.get("sessionId")),
                    str(entry.get("cwd")),
                    str(entry.get("title") or ""),
                    str(facts.get("agent") or ""),
                    str(facts.get("state") or ""),
                    str(entry.get("updatedAt") or ""),
                    entry,
                )
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str):
                return
            params = {**params, "cursor": cursor}

    async def delete(self, id: str) -> None:
        """Delete a session with its journal."""
        await self.connection.call("session/delete", {"sessionId": id})
        self.connection.sessions.pop(id, None)


def _folder(cwd: str | os.PathLike[str] | None) -> str:
    return os.path.abspath(cwd if cwd is not None else ".")  # noqa: PTH100 (not resolved: as the user knows it)
