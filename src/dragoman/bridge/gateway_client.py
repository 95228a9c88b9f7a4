"""A gateway client of the bridge: a client inside the same process that takes journals instead of updates."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable
from typing import Protocol

from dragoman import __version__
from dragoman.bridge.errors import friendly
from dragoman.gateway.access import quotas
from dragoman.gateway.client import ClientConnection, Terms
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.json_types import JsonObject, decode_object, encode
from dragoman.gateway.rewriting.rewrite import session_of
from dragoman.gateway.session.questions.question import CANCEL_ANSWER, ELICITATION, PERMISSION
from dragoman.gateway.session.session import Session
from dragoman.rpc.link import JournalSink
from dragoman.rpc.peer import CANCEL_REQUEST
from dragoman.rpc.request import Reply, Request
from dragoman.wire import message
from dragoman.wire.errors import RpcError, method_not_found
from dragoman.wire.message import ABSENT

log = logging.getLogger(__name__)

CAPABILITIES: JsonObject = {
    "fs": {"readTextFile": False, "writeTextFile": False},
    "terminal": False,
    "elicitation": {"form": {}, "url": {}},
    "session": {"configOptions": {"boolean": {}}, "notices": {}},
    "_meta": {"terminal_output": True},
}
"""The gateway serves files and terminals: a page has none."""

OnReply = Callable[[Reply], None]


class Callbacks(Protocol):
    """Callbacks of a `GatewayClient`."""

    @property
    def backlog(self) -> int:
        """Bytes queued to the page."""

    def journal_sink(self, session_id: str) -> JournalSink: ...

    def gateway_client_closed(self, gateway_client: GatewayClient, code: int | None, reason: str) -> None:
        """The gateway shuts down, or disconnects this client."""


class GatewayClient:
    """Implements `Link`, `JournalLink` and `CodedLink`."""

    def __init__(self, gateway: Gateway, terms: Terms, callbacks: Callbacks) -> None:
        self.gateway = gateway
        self.client: ClientConnection = gateway.connect(terms)
        self._callbacks = callbacks
        self._calls: dict[int, OnReply] = {}
        self._ids = itertools.count(1)
        self.client.peer.link_opened(self)
        info = {"name": "bridge", "title": "Dragoman's page", "version": __version__}
        params = {"protocolVersion": 1, "clientInfo": info, "clientCapabilities": CAPABILITIES}
        self.ask("initialize", params, lambda reply: None)

    # -- asking

    def ask(self, method: str, params: JsonObject, on_reply: OnReply) -> None:
        """Send a request; `on_reply` is called synchronously, before anything that the gateway sends afterwards."""
        id = next(self._ids)
        self._calls[id] = on_reply
        self.client.peer.link_messages([message.request(id, method, encode(params))])

    async def call(self, method: str, params: JsonObject, seen: OnReply | None = None) -> JsonObject:
        """Send a request and return its result; `seen` gets a good reply synchronously. Raises `BridgeError`."""
        answered: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        def on_reply(reply: Reply) -> None:
            if seen is not None and reply.ok:
                seen(reply)
            if not answered.done():
                answered.set_result(reply)

        self.ask(method, params, on_reply)
        reply = await answered
        if not reply.ok:
            raise friendly(decode_object(reply.error))
        return decode_object(reply.result)

    def prompt(self, session: Session, params: JsonObject, on_reply: OnReply) -> None:
        """Prompt a session without being attached to it; raises `RpcError` if the prompt is refused."""
        id = next(self._ids)
        request = Request(self.client.peer, b"%d" % id, (int, id), "session/prompt", encode(params), None)
        self._calls[id] = on_reply
        try:
            quotas.check(self.client, request.method)
            session.prompt(self.client, request)
        except RpcError:
            del self._calls[id]
            raise

    def leave(self, reason: str | None) -> None:
        self.client.peer.link_closed(reason)

    # -- Link

    def send(self, line: bytes) -> None:
        if line.startswith(b'{"jsonrpc":"2.0","method":"session/update"'):
            return  # the journal has it
        envelope = message.decode(line)
        if not envelope.method:
            self._answered(line)
        elif envelope.id is not ABSENT:
            self._asked(bytes(envelope.id), envelope.method, bytes(envelope.params))

    def journal_sink(self, session_id: str) -> JournalSink:
        return self._callbacks.journal_sink(session_id)

    def pause(self) -> None:
        """Nothing to pause: this client reads no stream."""

    def resume(self) -> None:
        pass

    def close(self) -> None:
        self._callbacks.gateway_client_closed(self, None, "")

    def close_with(self, code: int, reason: str = "") -> None:
        self._callbacks.gateway_client_closed(self, code, reason)

    @property
    def backlog(self) -> int:
        return self._callbacks.backlog

    def _answered(self, line: bytes) -> None:
        members = message.members(line)
        on_reply = self._calls.pop(int(bytes(members["id"])), None)
        if on_reply is not None:
            failed = "error" in members
            on_reply(
                Reply(error=bytes(members["error"])) if failed else Reply(result=bytes(members["result"]))
            )

    def _asked(self, id: bytes, method: str, params: bytes) -> None:
        """Refuse requests of the agent, except a session's questions: pages answer those from the journal by id."""
        if method in (PERMISSION, ELICITATION) and session_of(params) is not None:
            return
        answer = message.failure(id, method_not_found(method).encode())
        if method in CANCEL_ANSWER:
            answer = message.response(id, CANCEL_ANSWER[method])
        elif method != CANCEL_REQUEST:
            log.info("the bridge does not offer this", extra={"method": method})
        asyncio.get_running_loop().call_soon(lambda: self.client.peer.link_messages([answer]))
