"""Finds configured agents by name; errors are `RpcError`s for the client."""

from __future__ import annotations

from dragoman.agents.known import NotAvailable, UnknownAgent, find_agent
from dragoman.config.model import AgentConfig, Config
from dragoman.wire.errors import internal, invalid_params


class ConfiguredAgents:
    """Implements the gateway's `AgentDirectory`."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def find(self, name: str) -> AgentConfig:
        try:
            return find_agent(self._config, name)
        except UnknownAgent as error:
            message = f"Unknown agent: {error}"
            raise invalid_params(message, "agent", agent=name, nearest=error.nearest) from error
        except NotAvailable as error:
            raise internal(str(error), "agent_unavailable", agent=name) from error

    def names(self) -> list[str]:
        return sorted(self._config.agents)
