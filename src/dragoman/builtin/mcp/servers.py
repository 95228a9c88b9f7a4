"""The session's MCP servers."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
from typing import TYPE_CHECKING, Any

from dragoman.builtin.models.preload import load

if TYPE_CHECKING:
    from dragoman.builtin.session import Session

log = logging.getLogger(__name__)

Json = dict[str, Any]

CONNECT_SECONDS = 30.0
"""How long a prompt waits for servers that do not answer."""


class McpServers:
    """Connects to all servers at once in the background; a prompt waits for them, and a failed one is reported once."""

    def __init__(self, servers: list[Json], cwd: str) -> None:
        self._configured = [server for server in servers if isinstance(server, dict)]
        self._cwd = cwd
        self._servers: list[Any] = []
        self._starting: asyncio.Task[None] | None = None
        self._told: set[str] = set()

    def start(self) -> None:
        self._starting = asyncio.ensure_future(self._start())

    async def _start(self) -> None:
        if importlib.util.find_spec("mcp") is None:
            return
        connection = await asyncio.to_thread(load, "dragoman.builtin.mcp.connection")
        self._servers = [connection.McpConnection(server, self._cwd) for server in self._configured]
        await asyncio.gather(*(server.open(CONNECT_SECONDS) for server in self._servers))

    async def ready(self, session: Session) -> None:
        """Wait until every server answered or failed, and put their tools into the toolbox."""
        if self._starting is not None:
            await asyncio.shield(self._starting)
        for server in self._servers:
            if server.error is None:
                session.toolbox.external.update({tool.name: tool for tool in server.tools})
            elif server.name not in self._told:
                self._told.add(server.name)
                for tool in server.tools:
                    session.toolbox.external.pop(tool.name, None)
                session.say(
                    f"The MCP server {server.name!r} is not available: {server.error}\n\n",
                    kind="agent_thought_chunk",
                )

    def describe(self) -> str:
        if not self._servers:
            return "MCP servers need `pip install 'dragoman[agent]'`."
        lines = []
        for server in self._servers:
            if server.error is not None:
                lines.append(f"- {server.name}: not available: {server.error}")
            else:
                lines.append(
                    f"- {server.name}: {', '.join(tool.name for tool in server.tools) or 'no tools'}"
                )
        return "\n".join(lines)

    async def close(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
        await asyncio.gather(*(server.close() for server in self._servers))
