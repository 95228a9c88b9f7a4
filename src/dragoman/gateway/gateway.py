"""The gateway itself: its sessions, its clients, its agents. Everything that does IO is handed in."""

from __future__ import annotations

import asyncio
import fnmatch
import itertools
import logging
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Protocol, TypeVar

from dragoman.config.model import AgentConfig, Config
from dragoman.gateway.capabilities import fingerprint
from dragoman.gateway.client import ClientConnection, Terms
from dragoman.gateway.directory import MemoryDirectory
from dragoman.gateway.json_types import JsonObject
from dragoman.gateway.pool import Pool
from dragoman.gateway.ports.agent import CapabilityCache, Launcher
from dragoman.gateway.ports.services import ServicesFactory
from dragoman.gateway.session import Session
from dragoman.wire.errors import RpcError, internal

log = logging.getLogger(__name__)

T = TypeVar("T")


class AgentDirectory(Protocol):
    """Agents by name."""

    def find(self, name: str) -> AgentConfig:
        """Raises `RpcError` naming the nearest names."""

    def names(self) -> list[str]: ...


class Gateway:
    def __init__(
        self,
        config: Config,
        agents: AgentDirectory,
        launcher: Launcher,
        cache: CapabilityCache,
        services: ServicesFactory,
        *,
        spawn_in_cwd: bool = False,
    ) -> None:
        """`spawn_in_cwd`: agents start in their session's folder; on stdio they start where the editor started us."""
        self.config = config
        self.agents = agents
        self.launcher = launcher
        self.cache = cache
        self.services = services
        self.spawn_in_cwd = spawn_in_cwd
        self.pool = Pool(self)
        self.sessions: dict[str, Session] = {}
        self.directory = MemoryDirectory()
        self.journaling = False
        self.clients: set[ClientConnection] = set()
        self._keys = itertools.count(1)
        self._tasks: set[asyncio.Task[Any]] = set()
        self.closing = False

    # -- clients

    def connect(
        self,
        *,
        agent: str | None = None,
        token: str | None = None,
        repeat_initialize: bool = True,
        keep_sessions: bool = False,
    ) -> ClientConnection:
        """A new client; the transport sets its peer's link.

        `agent` binds all its sessions to one agent; `token` must come with its `initialize`.
        """
        terms = Terms(agent, token, repeat_initialize, keep_sessions)
        client = ClientConnection(self, next(self._keys), terms)
        self.clients.add(client)
        return client

    # -- agents

    def agent_config(self, name: str) -> AgentConfig:
        return self.agents.find(name)

    def agent_for(self, cwd: str, asked: object) -> str:
        """Which agent a session of an unbound client gets (G-036)."""
        if isinstance(asked, str) and asked:
            return asked
        for rule in self.config.workspaces:
            if rule.agent is not None and _matches(rule.path, cwd):
                return rule.agent
        return self.config.default_agent

    def cached_capabilities(self, config: AgentConfig, told: JsonObject) -> JsonObject | None:
        identity = self.launcher.identity(config)
        return self.cache.get(identity, fingerprint(told)) if identity is not None else None

    def remember_capabilities(self, config: AgentConfig, told: JsonObject, result: JsonObject) -> None:
        """A changed agent corrects the cache."""
        identity = self.launcher.identity(config)
        if identity is not None and self.cache.get(identity, fingerprint(told)) != result:
            self.cache.put(identity, fingerprint(told), result)

    # -- sessions

    def check_room(self) -> None:
        limit = self.config.limits.max_sessions
        if len(self.sessions) >= limit:
            raise internal(
                f"There are {limit} live sessions already (limits.max_sessions); close one first",
                "session_limit",
            )
        if self.closing:
            raise internal("Dragoman is shutting down", "shutdown")

    def add(self, session: Session) -> None:
        self.sessions[session.id] = session

    async def close_session(self, session: Session) -> None:
        """End a session and, with its last one, the agent process (G-057)."""
        self.sessions.pop(session.id, None)
        for attachment in list(session.attachments):
            session.detach(attachment.client)
        await session.services.close()
        agent = session.agent
        if agent is not None:
            agent.sessions.pop(session.agent_session_id, None)
            session.agent = None
            self.pool.reap(agent)

    # -- life

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run something beside the message path; what goes wrong in it is logged, never lost."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    async def close(self) -> None:
        """Settle every turn, end every agent (G-115)."""
        self.closing = True
        error = internal("Dragoman is shutting down", "shutdown")
        for session in list(self.sessions.values()):
            if session.turn is not None:
                session.turn.fail(error)
        for client in list(self.clients):
            client.peer.link.close()
        await self.pool.close()
        pending = [task for task in self._tasks if task is not asyncio.current_task()]
        if pending:
            await asyncio.wait(pending, timeout=10)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            if isinstance(error, RpcError):
                log.info("background work failed: %s", error.message)
            else:
                log.error("background work failed", exc_info=error)


def _matches(pattern: str, cwd: str) -> bool:
    path = str(Path(pattern).expanduser())
    return cwd == path or cwd.startswith(path.rstrip("/") + "/") or fnmatch.fnmatchcase(cwd, path)
