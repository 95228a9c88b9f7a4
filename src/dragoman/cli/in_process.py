"""The client library on the gateway in this process: what `exec` and `attach` are written on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dragoman.client.connection import LEAVE_TIMEOUT
from dragoman.client.gateway import Gateway as ClientGateway
from dragoman.gateway.access.client import Terms
from dragoman.gateway.client import ClientConnection
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.gateway_client import ToGateway
from dragoman.gateway.json_types import JsonObject
from dragoman.rpc.link import LinkHandler, Unpaused
from dragoman.rpc.peer import Peer
from dragoman.wire.framing import Frame


class InProcess:
    """Implements `Channel`."""

    name = "the gateway in this process"

    def __init__(self, running: Gateway, terms: Terms) -> None:
        self._client: ClientConnection = running.connect(terms)

    async def open(self, handler: LinkHandler) -> None:
        handler.link_opened(_Up(self._client.peer))
        self._client.peer.link_opened(_Down(handler))

    async def finish(self) -> None:
        """Wait until the gateway has ended this client's work; what takes longer ends when the gateway closes."""
        try:
            await asyncio.wait_for(self._client.left.wait(), LEAVE_TIMEOUT)
        except TimeoutError:
            pass


class _Up(ToGateway):
    """To the gateway; a pause tells it that this client reads slowly."""

    def __init__(self, peer: Peer) -> None:
        super().__init__(peer)
        self._gateway_peer = peer

    def pause(self) -> None:
        asyncio.get_running_loop().call_soon(self._gateway_peer.link_writable, False)

    def resume(self) -> None:
        asyncio.get_running_loop().call_soon(self._gateway_peer.link_writable, True)


class _Down(Unpaused):
    """From the gateway; implements `Link` and `BulkLink`."""

    backlog = 0

    def __init__(self, handler: LinkHandler) -> None:
        self._handler = handler

    def send(self, message: bytes) -> None:
        self._handler.link_messages([message])

    def send_all(self, messages: list[bytes]) -> None:
        frames: list[Frame] = [*messages]
        self._handler.link_messages(frames)

    def close(self) -> None:
        self._handler.link_closed(None)


async def open_gateway(
    running: Gateway,
    terms: Terms,
    capabilities: JsonObject,
    on_line: Callable[[bytes], None] | None = None,
) -> ClientGateway:
    """Connect to the gateway in this process; `on_line` gets every message that arrives, as it is on the wire."""

    def passed(line: bytes) -> bool:
        assert on_line is not None
        on_line(line)
        return False

    return await ClientGateway(
        InProcess(running, terms),
        capabilities=capabilities,
        name="dragoman-cli",
        title="Dragoman",
        intercept=passed if on_line is not None else None,
    ).open()
