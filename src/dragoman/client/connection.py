"""The connection to a gateway: requests out, updates and questions in, sorted by session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import msgspec

from dragoman import __version__
from dragoman.client.channel import Channel
from dragoman.client.errors import CannotConnect, ConnectionLost, DragomanError, error_of
from dragoman.client.question import Question
from dragoman.client.stream import Flow
from dragoman.rpc.peer import Peer, Receiver
from dragoman.rpc.request import OnReply, Reply, Request
from dragoman.wire.errors import Malformed, RpcError, internal, method_not_found
from dragoman.wire.json_types import JsonObject, as_object, decode_object, own_meta, read_object

PERMISSION = "session/request_permission"
LEAVE_TIMEOUT = 15.0
"""Seconds for the gateway to close the connection; each of its own steps has a shorter limit."""
HELLO_TIMEOUT = 60.0
"""Seconds for the gateway to answer `initialize`, for which a child has to start."""
# Neither files nor terminals: agents use their own.
CAPABILITIES: JsonObject = {
    "fs": {"readTextFile": False, "writeTextFile": False},
    "terminal": False,
    "session": {"notices": {}},
    "_meta": {"dragoman": {"turnEnds": True, "remembering": True, "seq": True, "leaveTurns": True}},
}


class Listener(Protocol):
    """Takes what belongs to one session."""

    def update(self, update: JsonObject, seq: int | None, size: int) -> None: ...

    def question(self, question: Question, size: int) -> None: ...

    def ended(self, error: DragomanError) -> None: ...


class Connection(Receiver):
    def __init__(self, channel: Channel, intercept: Callable[[bytes], bool] | None = None) -> None:
        """`intercept` gets every message first, as it is on the wire."""
        self.channel = channel
        self.peer = Peer("The gateway", self, intercept=intercept)
        self.flow = Flow(lambda: self.peer.link.pause(), lambda: self.peer.link.resume())
        self.sessions: dict[str, Listener] = {}
        self.closed = asyncio.Event()
        self._reason: str | None = None
        self._closing = False

    async def open(self, capabilities: JsonObject, name: str, title: str) -> JsonObject:
        """Connect and initialize; returns the gateway's answer."""
        await self.channel.open(self.peer)
        params = {
            "protocolVersion": 1,
            "clientCapabilities": capabilities,
            "clientInfo": {"name": name, "title": title, "version": __version__},
        }
        try:
            async with asyncio.timeout(HELLO_TIMEOUT):
                return await self.call("initialize", params)
        except TimeoutError as error:
            await self.close()
            raise CannotConnect(
                f"{self.channel.name} did not answer within {HELLO_TIMEOUT:g} s: is it overloaded?"
            ) from error
        except ConnectionLost as error:
            await self.close()
            told = f": {self._reason}" if self._reason else ""
            raise CannotConnect(f"{self.channel.name} ended the connection at once{told}") from error
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Disconnect and release everything; bounded."""
        self._closing = True
        if not self.peer.closed and hasattr(self.peer, "link"):
            self.peer.link.close()
        try:
            await self.channel.finish()
        finally:
            self.peer.link_closed(None)

    # -- asking

    def ask(self, method: str, params: JsonObject, on_reply: OnReply) -> int:
        return self.peer.request(method, msgspec.json.encode(params), on_reply)

    async def call(
        self, method: str, params: JsonObject, seen: Callable[[JsonObject], None] | None = None
    ) -> JsonObject:
        """Send a request and return its result; `seen` gets it before anything that is sent after it."""
        answered: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()

        def on_reply(reply: Reply) -> None:
            if not reply.ok:
                if not answered.done():
                    answered.set_exception(error_of(reply.as_error()))
                return
            result = read_object(reply.result)
            if seen is not None:
                seen(result)
            if not answered.done():
                answered.set_result(result)

        self.flow.awaited(1)
        try:
            call = self.ask(method, params, on_reply)
            try:
                return await answered
            except asyncio.CancelledError:
                self.peer.cancel(call)
                raise
        finally:
            self.flow.awaited(-1)

    def notify(self, method: str, params: JsonObject) -> None:
        self.peer.notify(method, msgspec.json.encode(params))

    # -- Receiver

    def peer_request(self, request: Request) -> None:
        if request.method != PERMISSION:
            raise method_not_found(request.method)
        session = self.sessions.get(str(decode_object(request.params).get("sessionId")))
        if session is not None:
            session.question(Question.of(request), request.size)

    def peer_notification(self, method: str, params: bytes) -> None:
        if method != "session/update":
            return
        try:
            told = decode_object(params)
        except Malformed:
            return
        session = self.sessions.get(str(told.get("sessionId")))
        if session is not None:
            seq = own_meta(told).get("seq")
            session.update(as_object(told.get("update")), seq if isinstance(seq, int) else None, len(params))

    def peer_closed(self, reason: str | None) -> RpcError:
        told = (
            f"{self.channel.name} ended the connection" if not self._closing else "the connection is closed"
        )
        text = f"{told}{f' ({reason})' if reason else ''}: connect again, and resume after the last `seq`"
        self._reason = reason
        self.closed.set()
        sessions, self.sessions = self.sessions, {}
        for session in sessions.values():
            session.ended(ConnectionLost(text))
        return internal(text, "connection_closed")
