"""Makes an agent with its own protocol look to the gateway like an agent that speaks ACP.

Two protocols meet here, each with its own ids:

    gateway ──ACP──► AdapterHandle ──► Peer ──► AgentAdapter ──its protocol──► its program (one process or several)

The handle is a `Link` like any other: messages of both directions are delivered in the next turn of the event loop, so
neither side ever runs inside a call of the other. No process is started besides the agent's own program.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, Protocol

import msgspec

from dragoman.agents.process import AgentProcess
from dragoman.gateway.ports.agent import AgentEnd
from dragoman.rpc.call import call
from dragoman.rpc.link import LinkHandler, Unpaused
from dragoman.rpc.peer import Peer, Receiver
from dragoman.rpc.request import Request
from dragoman.wire.errors import Malformed, RpcError, internal, invalid_params, method_not_found
from dragoman.wire.framing import Frame
from dragoman.wire.json_types import JsonObject, as_object, decode_object

log = logging.getLogger(__name__)


Spawn = Callable[[Sequence[str], LinkHandler, str | None], Awaitable[AgentProcess]]
"""Starts the agent's program with these arguments in this folder; raises `AgentUnavailable`."""


class Upstream(Protocol):
    """The gateway as an adapter sees it."""

    name: str

    def update(self, session_id: str, update: JsonObject) -> None:
        """Send a `session/update` to the gateway."""

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request to the gateway; cancelling the wait cancels the request."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine in the background."""

    def lost(self, end: AgentEnd) -> None:
        """Report that the program ended, and with it the agent."""


class AgentAdapter(Protocol):
    """Translates ACP requests into the agent's own protocol."""

    requests: dict[str, Callable[[JsonObject], Awaitable[JsonObject]]]
    """Handlers by ACP method; an `RpcError` that one raises becomes the response."""

    def cancel(self, params: JsonObject) -> None:
        """`session/cancel`."""

    def programs(self) -> Iterable[AgentProcess]:
        """All processes of the agent."""

    async def close(self) -> None:
        """End all processes of the agent."""


class AdapterHandle(Receiver):
    """Implements `AgentHandle` and `Receiver` for the gateway, `Upstream` for the adapter."""

    def __init__(self, handler: LinkHandler, name: str) -> None:
        self.name = name
        self._loop = asyncio.get_running_loop()
        self._handler = handler
        self._peer = Peer("The gateway", self, strict=False)
        self._peer.link_opened(_Upwards(self))
        self._adapter: AgentAdapter | None = None
        self._incoming: list[Frame] = []
        self._outgoing: list[Frame] = []
        self._paused = False
        self._closed = False
        self._end = AgentEnd()
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping: asyncio.Task[None] | None = None

    def begin(self, adapter: AgentAdapter) -> None:
        self._adapter = adapter
        self._handler.link_opened(self)

    # -- Upstream

    def update(self, session_id: str, update: JsonObject) -> None:
        """Send a `session/update` to the gateway."""
        self._peer.notify("session/update", msgspec.json.encode({"sessionId": session_id, "update": update}))

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request to the gateway; cancelling the wait cancels the request."""
        return as_object(await call(self._peer, method, params, cancels=True))

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def lost(self, end: AgentEnd) -> None:
        """Report that the program ended, and with it the agent."""
        self._end = end
        self._close_link(f"agent {end.describe()}")

    # -- AgentHandle

    @property
    def pid(self) -> int | None:
        return next((program.pid for program in self._programs()), None)

    def end(self) -> AgentEnd:
        return self._end

    def send(self, message: bytes) -> None:
        if self._closed:
            return
        if not self._incoming:
            self._loop.call_soon(self._read_requests)
        self._incoming.append(message)

    def pause(self) -> None:
        self._paused = True
        for program in self._programs():
            program.pause()

    def resume(self) -> None:
        self._paused = False
        for program in self._programs():
            program.resume()
        if self._outgoing:
            self._loop.call_soon(self._deliver_waiting)

    @property
    def backlog(self) -> int:
        return sum(program.backlog for program in self._programs())

    async def has_process_since(self, moment: float) -> bool:
        return any([await program.has_process_since(moment) for program in self._programs()])

    def close(self) -> None:
        if self._stopping is None:
            self._stopping = self._loop.create_task(self._stop_adapter())

    async def stop(self) -> None:
        self.close()
        assert self._stopping is not None
        await asyncio.shield(self._stopping)

    # -- Receiver

    def peer_request(self, request: Request) -> None:
        assert self._adapter is not None
        answer = self._adapter.requests.get(request.method)
        if answer is None:
            raise method_not_found(request.method)
        self.spawn(self._answer(request, answer))

    def peer_notification(self, method: str, params: bytes) -> None:
        if method == "session/cancel" and self._adapter is not None:
            # In the next turn of the loop: a prompt received before it has begun by then.
            self._loop.call_soon(self._adapter.cancel, decode_object(params))

    def peer_malformed(self, frame: bytes, error: Malformed) -> bool:
        return True

    async def _answer(self, request: Request, answer: Callable[[JsonObject], Awaitable[JsonObject]]) -> None:
        try:
            request.reply(msgspec.json.encode(await answer(decode_object(request.params))))
        except RpcError as error:
            request.fail(error)
        except Malformed as error:
            request.fail(error.as_error())
        except Exception as error:  # the request must be answered in any case
            log.exception("%s failed", request.method, extra={"agent": self.name})
            said = f"{request.method} failed: {type(error).__name__}: {error}"
            request.fail(internal(said, "adapter_failed", agent=self.name))

    # -- the two directions

    def _read_requests(self) -> None:
        frames, self._incoming = self._incoming, []
        self._peer.link_messages(frames)

    def deliver(self, message: bytes) -> None:
        if self._closed:
            return
        if not self._outgoing and not self._paused:
            self._loop.call_soon(self._deliver_waiting)
        self._outgoing.append(message)

    def _deliver_waiting(self) -> None:
        if self._outgoing and not self._paused and not self._closed:
            frames, self._outgoing = self._outgoing, []
            self._handler.link_messages(frames)

    def _programs(self) -> list[AgentProcess]:
        return list(self._adapter.programs()) if self._adapter is not None else []

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("adapter failed", extra={"agent": self.name}, exc_info=task.exception())

    async def _stop_adapter(self) -> None:
        if self._adapter is not None:
            await self._adapter.close()
        for task in list(self._tasks):
            task.cancel()
        self._close_link(None)

    def _close_link(self, reason: str | None) -> None:
        if self._closed:
            return
        self._paused = False
        self._deliver_waiting()  # deliver what was queued before the end
        self._closed = True
        self._peer.link_closed(reason)
        self._handler.link_closed(reason)


class _Upwards(Unpaused):
    """The link on which the adapter's peer sends to the gateway, which sends little."""

    backlog = 0

    def __init__(self, handle: AdapterHandle) -> None:
        self._handle = handle

    def send(self, message: bytes) -> None:
        self._handle.deliver(message)

    def close(self) -> None:
        self._handle.close()


def text_of(params: JsonObject, name: str) -> str:
    """A required string among a request's params."""
    value = params.get(name)
    if not isinstance(value, str) or not value:
        raise invalid_params(f"{name} is required", name)
    return value
