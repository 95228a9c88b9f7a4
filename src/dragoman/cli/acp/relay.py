"""`dragoman acp --connect`: forwards the editor's stdio to a running `dragoman serve`, message by message.

A restart of `serve` is handled like a broken connection to a remote agent: sessions are resumed after the last event
that the editor has, and a turn that was interrupted ends with an error that says so.

The relay reads only what it needs: it adds the agent of new sessions, and tracks the requests in flight, so that the
end of stdin cancels exactly those that are prompts, and all of them are answered (G-113).
"""

from __future__ import annotations

import asyncio
import logging
import signal
from pathlib import Path

from dragoman.agents.remote.agent import RemoteAgent
from dragoman.agents.remote.errors import RemoteError
from dragoman.cli.compose import first_of
from dragoman.gateway.json_types import decode_object, encode
from dragoman.gateway.ports.agent import AgentUnavailable
from dragoman.gateway.rewriting.rewrite import with_own_params
from dragoman.rpc.link import Link, LinkHandler
from dragoman.transports.dial import UnixDialer
from dragoman.transports.stdio import StdioLink
from dragoman.wire import message
from dragoman.wire.errors import INVALID_REQUEST, PARSE_ERROR, Malformed, RpcError, internal
from dragoman.wire.framing import Frame, FramingError
from dragoman.wire.message import ABSENT, IdKey

log = logging.getLogger(__name__)

FLUSH_TIMEOUT = 2.0
"""Seconds to wait for the answers of cancelled turns after stdin has ended; the editor may still read stdout."""
SETUP_TIMEOUT = 5.0
"""The same while other requests are in flight, such as a `session/new` that starts an agent."""
NAMES_AGENT = frozenset({"initialize", "session/new"})
"""Methods that get the agent's name as `_meta.dragoman.agent`: clients of the socket are bound to no agent."""


NOT_LISTENING = -1
"""Returned in place of an exit code: no `serve` listens, and nothing was read from stdin."""


async def relay(socket: Path, agent: str | None, max_bytes: int) -> int:
    """Forward messages until one side ends; returns the exit code, or `NOT_LISTENING`."""
    server = _End("dragoman serve")
    client = _End("the editor")
    passing = _Relay(client, server, agent)

    async def dial(handler: LinkHandler) -> Link:
        try:
            return await UnixDialer(max_bytes).dial(f"unix:{socket}", handler)
        except AgentUnavailable as error:
            raise RemoteError(str(error)) from error

    try:
        await RemoteAgent("serve", str(socket), server, dial, {}).connect()
    except RemoteError as error:
        log.info("not connected: %s", error)
        return NOT_LISTENING
    stdio = await StdioLink.open(client, max_bytes)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, client.closed.set)
    code = await passing.run()
    await stdio.finish()
    return code


class _End:
    """Implements `LinkHandler`: one side of the relay."""

    link: Link

    def __init__(self, name: str) -> None:
        self.name = name
        self.open = False
        self._early: list[Frame] = []
        self.closed = asyncio.Event()
        self.other: _End = self
        self.relay: _Relay | None = None

    def link_opened(self, link: Link) -> None:
        self.link, self.open = link, True
        if self.other._early:
            self.other.link_messages([])

    def link_messages(self, frames: list[Frame]) -> None:
        assert self.relay is not None
        if not self.other.open:
            self._early += frames
            return
        frames, self._early = [*self._early, *frames], []
        for frame in frames:
            if isinstance(frame, FramingError):
                self._unframed(frame)
            elif self is self.relay.client:
                self.other.link.send(self.relay.from_client(frame))
            else:
                self.relay.from_server(frame)
                self.other.link.send(frame)

    def link_writable(self, writable: bool) -> None:
        """While this side reads slowly, the other side is not read."""
        (self.other.link.resume if writable else self.other.link.pause)()

    def link_closed(self, reason: str | None) -> None:
        self.closed.set()

    def _unframed(self, frame: FramingError) -> None:
        log.warning("%s sent what is not a message: %s", self.name, frame.message)
        if not frame.silent:
            id = message.find_id_in_prefix(frame.prefix) if frame.oversize else b"null"
            error = RpcError(INVALID_REQUEST if frame.oversize else PARSE_ERROR, frame.message)
            self.link.send(message.failure(id, error.encode()))
        if frame.fatal:
            self.link.close()


class _Relay:
    def __init__(self, client: _End, server: _End, agent: str | None) -> None:
        self.client = client
        self._server = server
        self._agent_name = agent
        self._requests: dict[IdKey, str | None] = {}
        """The client's requests in flight, by id; the session of each prompt."""
        self._settled = asyncio.Event()
        client.other, server.other = server, client
        client.relay = server.relay = self

    async def run(self) -> int:
        """Run until one side ends; the turns that the client began end with it."""
        await first_of(self.client.closed.wait(), self._server.closed.wait())
        if self._server.closed.is_set():
            log.error("dragoman serve ended the connection")
            gone = internal("dragoman serve ended the connection; start it again", "connection_closed")
            for _, id in self._requests:
                self.client.link.send(message.failure(encode(id), gone.encode()))
            return 1
        sessions = set(self._requests.values())
        for session_id in sessions - {None}:
            cancel = encode({"sessionId": session_id})
            self._server.link.send(message.notification("session/cancel", cancel))
        if self._requests:
            timeout = SETUP_TIMEOUT if None in sessions else FLUSH_TIMEOUT
            await first_of(self._settled.wait(), self._server.closed.wait(), timeout=timeout)
        self._server.link.close()
        return 0

    def from_client(self, line: bytes) -> bytes:
        """The message to send to the server; a malformed one is forwarded, and the server reports it."""
        if b'"method"' not in line:  # a response
            return line
        try:
            envelope = message.decode(line)
            if envelope.method and envelope.id is not ABSENT:
                self._request_begins(envelope)
            if envelope.method in NAMES_AGENT and self._agent_name is not None:
                return with_own_params(line, agent=self._agent_name)
        except Malformed as error:
            log.info("passed on unread: %s", error.message)
        return line

    def from_server(self, line: bytes) -> None:
        """Note which requests are answered."""
        if not self._requests:
            return
        try:
            envelope = message.decode(line)
        except Malformed:
            return  # a batch, or nothing that answers a request
        if not envelope.method and envelope.id is not ABSENT:
            self._requests.pop(message.id_key(envelope.id) or (type(None), None), None)
            if not self._requests:
                self._settled.set()

    def _request_begins(self, envelope: message.Envelope) -> None:
        key = message.id_key(envelope.id)
        if key is None:
            return
        session_id = None
        if envelope.method == "session/prompt" and envelope.params is not ABSENT:
            session_id = decode_object(envelope.params).get("sessionId")
        self._settled.clear()
        self._requests[key] = session_id if isinstance(session_id, str) else None
