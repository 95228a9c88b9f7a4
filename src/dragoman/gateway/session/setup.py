"""What a session was created with, used again for a restarted agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.gateway.json_types import JsonObject, encode
from dragoman.gateway.lifecycle.mcp_servers import configured_servers, mcp_servers

if TYPE_CHECKING:
    from dragoman.gateway.agent import AgentConnection
    from dragoman.gateway.runtime import Runtime


class Setup:
    def __init__(
        self,
        token_name: str = "",
        mcp_servers: object = None,
        directories: list[str] | None = None,
        project: str | None = None,
    ) -> None:
        """`project` is the repository of a session in a worktree, whose MCP servers it gets."""
        self.token_name = token_name
        """Name of the token that made the session live here, for quotas; not the process that holds its lease."""
        self.directories = directories or []
        self._mcp_servers = mcp_servers
        self._project = project

    def loaded(self, token_name: str, params: JsonObject, directories: list[str]) -> None:
        """A client loads the session again, maybe with other MCP servers and folders."""
        self.token_name = self.token_name or token_name
        self._mcp_servers = params.get("mcpServers", self._mcp_servers)
        self.directories = directories or self.directories

    def woken_by(self, token_name: str) -> None:
        self.token_name = token_name

    async def servers_for(self, gateway: Runtime, agent: AgentConnection, cwd: str) -> list[JsonObject]:
        configured = await configured_servers(gateway, agent.name, self._project or cwd)
        return mcp_servers(self._mcp_servers, agent.capabilities, agent.name, configured)

    async def params_for(
        self, gateway: Runtime, agent: AgentConnection, cwd: str, agent_session_id: str | None
    ) -> bytes:
        """Params of `session/new`, or of `session/load` and `session/resume` with the agent's id."""
        params: JsonObject = {"cwd": cwd, "mcpServers": await self.servers_for(gateway, agent, cwd)}
        if self.directories and agent.capabilities.session("additionalDirectories"):
            params["additionalDirectories"] = self.directories
        if agent_session_id is not None:
            params["sessionId"] = agent_session_id
        return encode(params)
