"""The gateway client of commands that ask and follow nothing: in this process, or at the owner of a session."""

from __future__ import annotations

import asyncio
from typing import Self

from dragoman.client.connection import CAPABILITIES, LEAVE_TIMEOUT
from dragoman.gateway.access.client import Terms
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.gateway_client import GatewayClient
from dragoman.transports.dial import UnixDialer
from dragoman.wire.errors import RpcError, internal


class Conversation(GatewayClient):
    """The gateway client of a command."""

    # -- connecting

    @classmethod
    async def inside(cls, running: Gateway, terms: Terms) -> Self:
        """Connect to the gateway in this process."""
        conversation = cls()
        conversation.connect(running, terms)
        await conversation._begin()
        return conversation

    @classmethod
    async def with_owner(cls, address: str, max_bytes: int) -> Self:
        """Connect to the owner of a session; raises `AgentUnavailable` if it cannot be reached."""
        conversation = cls()
        await UnixDialer(max_bytes).dial(address, conversation.peer)
        await conversation._begin()
        return conversation

    async def _begin(self) -> None:
        reply = await self.initialize(CAPABILITIES, "dragoman-cli", "Dragoman")
        if not reply.ok:
            raise reply.as_error()

    # -- leaving

    def hang_up(self) -> None:
        self.peer.link.close()

    async def disconnect(self) -> None:
        """Disconnect, and wait until the gateway in this process has ended this client's work."""
        self.hang_up()
        try:
            await asyncio.wait_for(self.client.left.wait(), LEAVE_TIMEOUT)
        except TimeoutError:
            pass  # the gateway ends it when it closes

    # -- Receiver

    def peer_closed(self, reason: str | None) -> RpcError:
        return internal("The process that owns the session has ended", "connection_closed")
