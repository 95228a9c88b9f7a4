"""Connects to the configured remote agents."""

from __future__ import annotations

import os
from collections import OrderedDict

from dragoman.agents.remote.address import Address
from dragoman.agents.remote.agent import LetGo, OpenChannel, RemoteAgent
from dragoman.agents.remote.credentials import Cookies, headers_of, tls_context
from dragoman.agents.remote.errors import RemoteError
from dragoman.agents.secrets import SecretError
from dragoman.config.model import AgentConfig
from dragoman.gateway.ports.agent import AgentHandle, AgentUnavailable
from dragoman.rpc.link import Link, LinkHandler

MAX_POSITIONS = 10_000
"""Most sessions whose last update number is stored after their connection ended."""


class Positions(OrderedDict[str, int]):
    """The number of the last update received in each session; the oldest entries are dropped."""

    def __setitem__(self, session_id: str, seq: int) -> None:
        super().__setitem__(session_id, seq)
        self.move_to_end(session_id)
        while len(self) > MAX_POSITIONS:
            self.popitem(last=False)


class Remotes:
    """Connects to remote agents, and stores the last update number of each of their sessions."""

    def __init__(self, max_message_bytes: int) -> None:
        self._max_bytes = max_message_bytes
        self._positions: dict[str, Positions] = {}

    async def launch(self, name: str, agent: AgentConfig, handler: LinkHandler) -> AgentHandle:
        """Connect to a remote agent; raises `AgentUnavailable`."""
        address = Address.of(agent.url or "")
        positions = self._positions.setdefault(name, Positions())
        try:
            open_channel, let_go = await self._opener(address, agent)
            remote = RemoteAgent(name, str(address), handler, open_channel, positions, let_go)
            await remote.connect()
        except (RemoteError, SecretError) as error:
            raise AgentUnavailable(f"The agent {name} cannot be reached: {error}") from error
        return remote

    async def _opener(self, address: Address, agent: AgentConfig) -> tuple[OpenChannel, LetGo | None]:
        headers = await headers_of(agent, os.environ)
        context = tls_context(agent.ca) if address.secure else None
        if address.websocket:
            from dragoman.agents.remote.websocket import open_websocket

            cookies = Cookies()

            async def open_socket(handler: LinkHandler) -> Link:
                return await open_websocket(address, headers, cookies, context, handler, self._max_bytes)

            return open_socket, None
        from dragoman.agents.remote.streamable import HttpChannel, http_client

        client = http_client(address, headers, context)

        async def open_http(handler: LinkHandler) -> Link:
            return HttpChannel(address, client, handler, self._max_bytes)

        return open_http, client.aclose
