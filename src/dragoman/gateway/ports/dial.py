"""The interface for a connection to another process of Dragoman, which owns a session."""

from __future__ import annotations

from typing import Protocol

from dragoman.gateway.ports.agent import AgentHandle
from dragoman.rpc.link import LinkHandler


class Dialer(Protocol):
    async def dial(self, address: str, handler: LinkHandler) -> AgentHandle:
        """Connect to the address of an `Owner`; raises `AgentUnavailable`."""
