"""A client of the gateway inside the same process: pages, REST, inline requests and our own commands are one.

Its link is a call. What the gateway sends arrives before the gateway goes on, so that a reply is handled before
anything that is sent after it. A request to the gateway is handled before `ask` returns; an answer to a question waits
for the next turn of the event loop, since the gateway may still be asking others.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from dragoman import __version__
from dragoman.gateway.access.client import Terms
from dragoman.gateway.client import ClientConnection
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.json_types import JsonObject, decode_object, encode
from dragoman.rpc.link import Unpaused
from dragoman.rpc.peer import Peer, Receiver
from dragoman.rpc.request import OnReply, Reply
from dragoman.wire import message
from dragoman.wire.errors import Malformed, RpcError, internal


class GatewayClient(Unpaused, Receiver):
    """`Receiver` of the gateway's messages, and the `Link` that it sends them on.

    A subclass that is a `JournalLink` is sent journals instead of updates, one that is a `SplitLink` has a stream for
    each session.
    """

    client: ClientConnection
    backlog = 0

    def __init__(self, intercept: Callable[[bytes], bool] | None = None) -> None:
        self.peer = Peer("Dragoman", self, intercept=intercept)

    def connect(self, gateway: Gateway, terms: Terms) -> None:
        self.client = gateway.connect(terms)
        self.peer.link_opened(ToGateway(self.client.peer))
        self.client.peer.link_opened(self)

    # -- asking

    def ask(self, method: str, params: JsonObject | bytes, on_reply: OnReply) -> int:
        """Send a request; `on_reply` may be called before this returns."""
        return self.peer.request(method, params if isinstance(params, bytes) else encode(params), on_reply)

    def call(
        self, method: str, params: JsonObject | bytes, seen: OnReply | None = None
    ) -> asyncio.Future[Reply]:
        """Send a request; `seen` gets a good reply before anything that the gateway sends after it.

        What `seen` raises is raised in the caller that awaits the reply.
        """
        answered: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        def on_reply(reply: Reply) -> None:
            try:
                if seen is not None and reply.ok:
                    seen(reply)
            except Exception as error:
                if answered.done():
                    raise
                answered.set_exception(error)
            if not answered.done():
                answered.set_result(reply)

        self.ask(method, params, on_reply)
        return answered

    async def result(
        self, method: str, params: JsonObject | bytes, seen: OnReply | None = None
    ) -> JsonObject:
        """Send a request and return its result; raises `RpcError`."""
        reply = await self.call(method, params, seen)
        if not reply.ok:
            raise reply.as_error()
        try:
            return decode_object(reply.result)
        except Malformed:
            return {}

    def initialize(
        self, capabilities: JsonObject, name: str | None = None, title: str = ""
    ) -> asyncio.Future[Reply]:
        params: JsonObject = {"protocolVersion": 1, "clientCapabilities": capabilities}
        if name is not None:
            params["clientInfo"] = {"name": name, "title": title, "version": __version__}
        return self.call("initialize", params)

    def leave(self, reason: str | None = None) -> None:
        """Disconnect; the gateway answers what is open, then closes the link."""
        self.client.peer.link_closed(reason)

    # -- Link

    def send(self, message: bytes) -> None:
        self.peer.link_messages([message])

    def send_all(self, messages: list[bytes]) -> None:
        self.peer.link_messages([*messages])

    def close(self) -> None:
        if not self.peer.closed:
            self.peer.link_closed(None)
            self.peer.link.close()

    # -- Receiver

    def peer_closed(self, reason: str | None) -> RpcError:
        return internal("Dragoman is shutting down", "shutdown")


class ToGateway(Unpaused):
    """Implements `Link`: a client's way to the gateway."""

    backlog = 0

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[bytes] = deque()

    def send(self, line: bytes) -> None:
        if not self._waiting and message.decode(line).method:
            self._peer.link_messages([line])
            return
        self._waiting.append(line)
        self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        self._peer.link_messages([self._waiting.popleft()])

    def close(self) -> None:
        self._loop.call_soon(self._peer.link_closed, None)
