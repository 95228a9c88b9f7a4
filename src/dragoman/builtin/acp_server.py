"""The agent's side of ACP: requests of the client are answered from a table of methods."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from dragoman.builtin.client import Client
from dragoman.rpc.peer import Peer, Receiver
from dragoman.rpc.request import Request
from dragoman.wire.errors import Malformed, RpcError, internal, method_not_found
from dragoman.wire.json_types import JsonObject, decode_object

log = logging.getLogger(__name__)

Handler = Callable[[JsonObject], Coroutine[Any, Any, JsonObject]]


class AcpServer(Receiver):
    """Answers each request in a task of its own; tasks begin in the order of the requests."""

    methods: dict[str, Handler]

    def __init__(self) -> None:
        self.peer = Peer("The client", self)
        self.client = Client(self.peer)
        self.left = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def authenticate(self, params: JsonObject) -> JsonObject:
        """Does nothing: these agents have no login."""
        return {}

    def failure(self, error: Exception) -> RpcError:
        """The answer to a request whose handler failed."""
        return internal("Internal error in the agent; its log has the details")

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def cancel_tasks(self) -> None:
        for task in list(self._tasks):
            task.cancel()

    def peer_request(self, request: Request) -> None:
        params = decode_object(request.params)
        handler = self.methods.get(request.method)
        if handler is None:
            raise method_not_found(request.method)
        self.spawn(self._answer(request, handler(params)))

    def peer_notification(self, method: str, params: bytes) -> None:
        if method == "session/cancel":
            # As a task, like requests, so that a prompt received just before it has begun.
            self.spawn(self.methods[method](decode_object(params)))

    def peer_malformed(self, frame: bytes, error: Malformed) -> bool:
        log.warning("message is not JSON-RPC: %s", error.message)
        return True

    def peer_writable(self, writable: bool) -> None:
        self.client.set_writable(writable)

    def peer_closed(self, reason: str | None) -> RpcError | None:
        self.client.set_writable(True)
        self.left.set()
        return None

    async def _answer(self, request: Request, work: Coroutine[Any, Any, JsonObject]) -> None:
        try:
            request.reply(msgspec.json.encode(await work))
        except RpcError as error:
            request.fail(error)
        except Exception as error:  # the client gets an answer in any case
            log.exception("%s failed", request.method)
            request.fail(self.failure(error))
