"""The connection to one `codex app-server`: JSON-RPC without the `jsonrpc` member in either direction (D-114)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dragoman.agents.adapter import Spawn
from dragoman.agents.process import AgentProcess
from dragoman.gateway.ports.agent import AgentEnd, AgentUnavailable
from dragoman.rpc.call import call
from dragoman.rpc.link import Link
from dragoman.rpc.peer import Peer, Receiver
from dragoman.wire import limits
from dragoman.wire.errors import Malformed, RpcError, internal
from dragoman.wire.json_types import JsonObject, as_object

START_PATIENCE = 60.0
"""Seconds to wait for a program that sends nothing."""
UPDATE = "npm install -g @openai/codex"
CAPABILITIES = {"experimentalApi": True, "requestAttestation": False}
"""`experimentalApi` is needed for collaboration modes."""
_VERSION = b'{"jsonrpc":"2.0",'


class _Bare:
    """A link that removes the `jsonrpc` member, which Codex omits too."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.pause, self.resume, self.close = link.pause, link.resume, link.close

    def send(self, message: bytes) -> None:
        self._link.send(b"{" + message.removeprefix(_VERSION) if message.startswith(_VERSION) else message)

    @property
    def backlog(self) -> int:
        return self._link.backlog


class _Peer(Peer):
    def link_opened(self, link: Link) -> None:
        super().link_opened(_Bare(link))


class Server:
    def __init__(self, name: str, receiver: Receiver, lost: Callable[[AgentEnd], None]) -> None:
        self.program: AgentProcess | None = None
        self._name = name
        self._lost = lost
        self._peer = _Peer("Codex", receiver, strict=False)
        self._garbage = 0
        self._stopping = False
        self._ready = False

    async def start(self, spawn: Spawn, client: JsonObject) -> JsonObject:
        """Start the program and initialize it; returns its answer to `initialize`."""
        try:
            self.program = await spawn(["app-server"], self._peer, None)
        except AgentUnavailable as error:
            raise internal(str(error), "agent_unavailable", agent=self._name) from error
        try:
            async with asyncio.timeout(START_PATIENCE):
                answer = await self.ask("initialize", {"clientInfo": client, "capabilities": CAPABILITIES})
        except TimeoutError as error:
            raise self.failed(f"said nothing for {START_PATIENCE:g} s") from error
        self._peer.notify("initialized", b"{}")
        self._ready = True
        return answer

    async def stop(self) -> None:
        self._stopping = True
        if self.program is not None:
            await self.program.stop()

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request; raises `RpcError` if Codex refuses it."""
        return as_object(await call(self._peer, method, params))

    def closed(self) -> RpcError:
        """Report the end of the process; returns the error for open requests."""
        end = self.program.end() if self.program is not None else AgentEnd()
        if self._ready and not self._stopping:  # before that, `start` raises
            self._lost(end)
        return self.failed(end.describe())

    def garbage(self, error: Malformed) -> None:
        self._garbage += 1
        if self._garbage == limits.GARBAGE_LINES and self.program is not None:
            self.program.close()

    def failed(self, how: str) -> RpcError:
        tail = self.program.end().stderr_tail.strip() if self.program is not None else ""
        said = f". Its last lines on stderr:\n{tail}" if tail else ""
        step = "" if self._ready else f"\n{_next_step(tail)}"
        return internal(f"The agent {self._name} {how}{said}{step}", "agent_exited", agent=self._name)


def _next_step(tail: str) -> str:
    """Advice on a program that did not start."""
    if "unrecognized subcommand" in tail:
        return f"It is too old to have an app-server. Install it again: {UPDATE}"
    return "Correct its configuration (CODEX_HOME or ~/.codex, config.toml), or see what `codex app-server` says."
