"""A remote agent, whose network connection may be lost and restored.

open ──connection lost, a Dragoman behind──► away ──initialized and resumed──► open
 │                                            │ refused for good, or PATIENCE over
 │ connection lost, any other server          ▼
 └──────────────────────────────────────────► ended   the gateway fails the turn; the next prompt restarts the agent
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any

import msgspec

from dragoman.agents.remote.backoff import Backoff
from dragoman.agents.remote.errors import RemoteError
from dragoman.agents.remote.ledger import Ledger
from dragoman.agents.remote.lines import dragoman_facts, meta_of, with_id
from dragoman.gateway.ports.agent import AgentEnd
from dragoman.rpc.call import happens
from dragoman.rpc.link import Link, LinkHandler
from dragoman.wire import message
from dragoman.wire.errors import Malformed
from dragoman.wire.framing import Frame
from dragoman.wire.message import ABSENT

log = logging.getLogger(__name__)

OpenChannel = Callable[[LinkHandler], Awaitable[Link]]
LetGo = Callable[[], Coroutine[Any, Any, None]]

ANSWER_TIMEOUT = 30.0
"""Seconds for a server to answer the requests that restore a connection."""
GOODBYE = 3.0
"""Seconds for closing the connection."""


class RemoteAgent:
    """Implements `AgentHandle`."""

    def __init__(
        self,
        name: str,
        where: str,
        handler: LinkHandler,
        open_channel: OpenChannel,
        positions: MutableMapping[str, int],
        let_go: LetGo | None = None,
    ) -> None:
        """`let_go` releases the resources that all connections share."""
        self._name = name
        self._where = where
        self._handler = handler
        self._open_channel = open_channel
        self._let_go = let_go
        self._ledger = Ledger(positions)
        self._channel: Link | None = None
        self._below: _ConnectionHandler | None = None
        self._away = False
        self._paused = False
        self._closing = False
        self._closed = asyncio.Event()
        self._said = ""
        self._private: dict[bytes, asyncio.Future[message.Envelope]] = {}
        self._next_private = 0
        self._returning: asyncio.Task[None] | None = None
        self._leaving: asyncio.Task[None] | None = None
        handler.link_opened(self)

    async def connect(self) -> None:
        """Open the first connection; raises `RemoteError`."""
        self._channel = await self._open()

    async def _open(self) -> Link:
        self._below = _ConnectionHandler(self)
        channel = await self._open_channel(self._below)
        if self._paused:
            channel.pause()
        return channel

    # -- AgentHandle

    @property
    def pid(self) -> int | None:
        return None

    def end(self) -> AgentEnd:
        return AgentEnd(reason=self._said or None)

    async def has_process_since(self, moment: float) -> bool:
        return False  # the server ends its own processes

    async def stop(self) -> None:
        self.close()
        if not await happens(self._closed, GOODBYE):
            self._end(None)

    def send(self, message: bytes) -> None:
        if self._closing:
            return
        self._ledger.outgoing(message)
        self._write()

    def pause(self) -> None:
        self._paused = True
        if self._channel is not None:
            self._channel.pause()

    def resume(self) -> None:
        self._paused = False
        if self._channel is not None:
            self._channel.resume()

    @property
    def backlog(self) -> int:
        waiting = sum(map(len, self._ledger.to_server))
        return waiting + (self._channel.backlog if self._channel is not None else 0)

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        if self._away and self._returning is not None and not self._returning.done():
            self._returning.add_done_callback(self._gave_up)
            self._returning.cancel()
        elif self._channel is not None and not self._away:
            self._channel.close()
        else:
            asyncio.get_running_loop().call_soon(self._end, None)

    def _gave_up(self, returning: asyncio.Task[None]) -> None:
        """End after `close` while away, unless a connection is being restored; closing that one ends the agent."""
        if self._away:
            self._end(None)

    # -- the channel

    def channel_messages(self, below: _ConnectionHandler, frames: list[Frame]) -> None:
        if below is not self._below:
            return
        ledger = self._ledger
        for frame in frames:
            if not isinstance(frame, bytes):
                self._hand_over()
                self._handler.link_messages([frame])
            elif not (self._private and self._is_private(frame)):
                ledger.incoming(frame)
        self._hand_over()
        self._write()

    def channel_writable(self, below: _ConnectionHandler, writable: bool) -> None:
        if below is self._below:
            self._handler.link_writable(writable)

    def channel_closed(self, below: _ConnectionHandler, reason: str | None) -> None:
        if below is not self._below:
            return
        if self._away:
            self._fail_private(reason)
        elif self._closing or not self._ledger.can_return:
            self._end(reason)
        else:
            log.warning("connection lost: %s", reason, extra={"agent": self._name, "url": self._where})
            self._away = True
            self._ledger.lost()
            self._hand_over()
            self._returning = asyncio.get_running_loop().create_task(self._return(reason))

    def _hand_over(self) -> None:
        lines, self._ledger.to_gateway = self._ledger.to_gateway, []
        if lines:
            self._handler.link_messages([*lines])

    def _write(self) -> None:
        if self._away or self._channel is None:
            return
        lines, self._ledger.to_server = self._ledger.to_server, []
        for line in lines:
            self._channel.send(line)

    def _end(self, reason: str | None) -> None:
        if self._closed.is_set():
            return
        self._closed.set()
        self._closing = True
        self._ledger.keep_positions()
        if self._let_go is not None:
            self._leaving = asyncio.get_running_loop().create_task(self._let_go())
        if not self._said and self._trouble is not None:
            self._said = f"cannot be reached: {self._trouble}"
        elif not self._said:
            self._said = f"ended its connection ({self._where}{f': {reason}' if reason else ''})"
        self._handler.link_closed(self._said)

    @property
    def _trouble(self) -> RemoteError | None:
        """Why the channel could not go on, if it knows."""
        trouble = getattr(self._channel, "trouble", None)
        return trouble if isinstance(trouble, RemoteError) else None

    # -- reconnecting

    async def _return(self, reason: str | None) -> None:
        backoff = Backoff()
        while True:
            await backoff.wait()
            try:
                await self._reconnect()
                return
            except RemoteError as trouble:
                log.info("not connected again yet: %s", trouble, extra={"agent": self._name})
                if trouble.lasting or backoff.over:
                    self._said = (
                        f"lost its connection ({reason or 'closed'}) and it did not come back: {trouble}"
                    )
                    self._end(reason)
                    return

    async def _reconnect(self) -> None:
        """Reconnect: initialize again, resume every session, send what is queued."""
        channel = await self._open()
        self._channel = channel
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                hello = self._ledger.hello
                await self._ask(channel, lambda id: with_id(hello, id))
                for params in self._ledger.resume_params().values():
                    answer = await self._resume(channel, params)
                    if "seq" not in dragoman_facts(meta_of(answer.result)):
                        raise RemoteError(
                            "the server does not keep its sessions (sessions.journal)", lasting=True
                        )
        except TimeoutError as error:
            self._abandon(channel)
            raise RemoteError(f"{self._where} did not answer within {ANSWER_TIMEOUT:g} s") from error
        except RemoteError:
            self._abandon(channel)
            raise
        except asyncio.CancelledError:  # `close`
            self._away = False
            channel.close()
            raise
        self._away = False
        log.info("connected again", extra={"agent": self._name, "url": self._where})
        self._ledger.returned()
        self._write()

    async def _resume(self, channel: Link, params: bytes) -> message.Envelope:
        return await self._ask(channel, lambda id: message.request(id, "session/resume", params))

    async def _ask(self, channel: Link, line: Callable[[bytes], bytes]) -> message.Envelope:
        """Send a request of our own, whose response does not go to the gateway."""
        self._next_private += 1
        id = b'"dragoman-return-%d"' % self._next_private
        future: asyncio.Future[message.Envelope] = asyncio.get_running_loop().create_future()
        self._private[id] = future
        channel.send(line(id))
        try:
            answer = await future
        finally:
            self._private.pop(id, None)
        if answer.error is not ABSENT:
            error = msgspec.json.decode(answer.error)
            said = error.get("message") if isinstance(error, dict) else error
            raise RemoteError(f"{self._where} does not resume the session: {said}", lasting=True)
        return answer

    def _is_private(self, line: bytes) -> bool:
        try:
            envelope = message.decode(line)
        except Malformed:
            return False
        future = self._private.get(bytes(envelope.id)) if envelope.id is not ABSENT else None
        if future is None or envelope.method or future.done():
            return False
        future.set_result(envelope)
        return True

    def _fail_private(self, reason: str | None) -> None:
        again = f"the connection to {self._where} broke again: {reason or 'closed'}"
        failure = self._trouble or RemoteError(again)
        for future in self._private.values():
            if not future.done():
                future.set_exception(failure)

    def _abandon(self, channel: Link) -> None:
        self._below = None
        channel.close()


class _ConnectionHandler(LinkHandler):
    """For one connection; its events are ignored once there is another."""

    def __init__(self, agent: RemoteAgent) -> None:
        self._agent = agent

    def link_messages(self, frames: list[Frame]) -> None:
        self._agent.channel_messages(self, frames)

    def link_writable(self, writable: bool) -> None:
        self._agent.channel_writable(self, writable)

    def link_closed(self, reason: str | None) -> None:
        self._agent.channel_closed(self, reason)
