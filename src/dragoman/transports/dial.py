"""Connects to another Dragoman process over its unix socket, as if that process were an agent."""

from __future__ import annotations

import asyncio
from pathlib import Path

from dragoman.gateway.ports.agent import AgentEnd, AgentUnavailable
from dragoman.machine import short_path
from dragoman.rpc.link import LinkHandler
from dragoman.transports.stream import StreamLink


class DialedLink(StreamLink):
    """Implements `AgentHandle` for a connection without a child process."""

    @property
    def pid(self) -> int | None:
        return None

    def end(self) -> AgentEnd:
        return AgentEnd()

    async def has_process_since(self, moment: float) -> bool:
        return False

    async def stop(self) -> None:
        self.close()


class UnixDialer:
    """Implements `Dialer`."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes

    async def dial(self, address: str, handler: LinkHandler) -> DialedLink:
        kind, _, socket_path = address.partition(":")
        if kind != "unix":
            raise AgentUnavailable(
                f"{address} cannot be reached from here: it is not a socket of this machine"
            )
        loop = asyncio.get_running_loop()
        try:
            with short_path(Path(socket_path)) as name:
                _, link = await loop.create_unix_connection(
                    lambda: DialedLink(handler, self._max_bytes), name
                )
        except OSError as error:
            raise AgentUnavailable(f"{socket_path} cannot be reached: {error.strerror or error}") from error
        return link
