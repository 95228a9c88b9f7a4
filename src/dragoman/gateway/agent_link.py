"""The link to one agent: its start and end, requests that do not wait forever, and back-pressure."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from dragoman import __version__
from dragoman.gateway.access.capabilities import PROTOCOL_VERSION, AgentCapabilities
from dragoman.gateway.json_types import JsonObject, as_object, decode_object, encode
from dragoman.gateway.path_mapping.mapped_peer import MappedPeer, MappedRewriter
from dragoman.gateway.ports.agent import AgentHandle, AgentUnavailable
from dragoman.gateway.ports.sandbox import Box
from dragoman.gateway.rewriting.updates import UpdateRewriter
from dragoman.rpc.link import LinkHandler
from dragoman.rpc.peer import Peer, Receiver
from dragoman.rpc.request import Reply, Request
from dragoman.wire import limits
from dragoman.wire.errors import INTERNAL_ERROR, Malformed, RpcError, internal

log = logging.getLogger(__name__)

Launch = Callable[[LinkHandler], Awaitable[AgentHandle]]


class SilentAgent(RpcError):
    """The agent sent nothing for too long while a request was open."""


class AgentLink(Receiver):
    def __init__(self, name: str, box: Box | None, cwd: str | None) -> None:
        self.name = name
        self.box = box
        """The sandbox that the agent runs in."""
        self.paths = box.paths_for(cwd) if box is not None else None
        self.peer = (
            Peer(f"The agent {name}", self, strict=False, intercept=self._intercept)
            if self.paths is None
            else MappedPeer(f"The agent {name}", self, self.paths, self._intercept)
        )
        self.capabilities = AgentCapabilities({})
        self.handle: AgentHandle | None = None
        self.stopping = False
        self._holds: set[object] = set()
        self.origins: dict[object, bytes] = {}
        """The client's id of a forwarded request by our id, for elicitations about a request."""
        self.gone: RpcError | None = None
        """Why the agent ended, once that is known."""

    def _intercept(self, line: bytes) -> bool:
        """Handle a message ahead of the peer; False to leave it to the peer."""
        raise NotImplementedError

    def refused(self, method: str, params: bytes, reply: Reply) -> None:
        """The agent answered a request with an error."""

    async def start(
        self, launch: Launch, capabilities: JsonObject, client_info: object, timeout: float
    ) -> JsonObject:
        """Launch and initialize; returns the agent's own `initialize` result."""
        try:
            self.handle = await launch(self.peer)
        except AgentUnavailable as error:
            self.gone = internal(str(error), "agent_unavailable", agent=self.name)
            raise self.gone from error
        if self.stopping:  # told to stop before there was a process
            await self.handle.stop()
        if self.peer.closed:
            self.gone = None  # made before there was a handle that knows how the agent ended
            failure = self.gone_error()
            raise internal(f"It did not start: {failure.message}", "agent_unavailable", agent=self.name)
        log.info("agent started", extra={"agent": self.name, "pid": self.handle.pid})
        params: JsonObject = {"protocolVersion": PROTOCOL_VERSION, "clientCapabilities": capabilities}
        params["clientInfo"] = client_info or {
            "name": "dragoman",
            "title": "Dragoman",
            "version": __version__,
        }
        try:
            reply = await asyncio.wait_for(self.call("initialize", encode(params)), timeout)
        except TimeoutError as error:
            raise internal(
                f"The agent {self.name} did not answer initialize within {timeout:g} s{self._stderr()}",
                "agent_unavailable",
                agent=self.name,
            ) from error
        if not reply.ok and self.handle.end().reason is not None:
            raise internal(self.gone_error().message, "agent_unavailable", agent=self.name)
        if not reply.ok:
            refusal = as_object(decode_object(reply.error))
            why = str(refusal.get("message"))
            told = why if "Its last lines on stderr" in why else f"{why}{self._stderr()}"
            raise internal(
                f"The agent {self.name} refused to start: {told}",
                "agent_unavailable",
                agent=self.name,
                error=refusal,
            )
        try:
            result = decode_object(reply.result)
        except Malformed as error:
            raise internal(
                f"The agent {self.name} answered initialize with something that is not an object",
                "agent_unavailable",
                agent=self.name,
            ) from error
        self.capabilities = AgentCapabilities(result)
        return result

    async def stop(self) -> None:
        self.stopping = True
        if self.handle is not None:
            await self.handle.stop()

    @property
    def alive(self) -> bool:
        return self.handle is not None and not self.peer.closed

    def gone_error(self) -> RpcError:
        """Why this agent does not answer any more (G-110)."""
        if self.gone is None:
            end = self.handle.end() if self.handle is not None else None
            how = end.describe() if end is not None else "is not running"
            if self.box is not None and end is not None:
                how = f"in the sandbox {self.box.name} {how}{self.box.explain(end)}"
            self.gone = internal(
                f"The agent {self.name} {how}{self._stderr()}",
                "agent_exited",
                agent=self.name,
                exitCode=end.exit_code if end else None,
                signal=end.signal if end else None,
                stderrTail=self.outside(end.stderr_tail) if end else "",
            )
        return self.gone

    def rewriter(
        self, agent_session_id: str, session_id: str, see: Callable[[JsonObject], bool]
    ) -> UpdateRewriter:
        """The rewriter for this agent's updates of a session."""
        if self.paths is None:
            return UpdateRewriter(agent_session_id, session_id, see)
        return MappedRewriter(agent_session_id, session_id, see, self.paths)

    # -- asking

    async def call(
        self,
        method: str,
        params: bytes,
        origin: Request | None = None,
        heard: Callable[[Reply], None] | None = None,
        patience: float | None = None,
    ) -> Reply:
        """Send a request and wait for its answer, for the few requests that set something up.

        `origin` is the client's request behind it; `heard` is called with the answer before any later message of the
        agent is handled. Raises `SilentAgent` if the agent sends nothing for `patience` seconds.
        """
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        def answered(reply: Reply) -> None:
            if future.done():
                return
            try:
                if heard is not None:
                    heard(reply)
            except (RpcError, Malformed) as error:  # raised in the waiting caller
                future.set_exception(error)
            else:
                future.set_result(reply)

        call = self.peer.request(method, params, answered)
        if origin is not None:
            self.origins[call] = origin.id
        try:
            reply = await self._within(future, method, patience)
        except (asyncio.CancelledError, SilentAgent):
            self.peer.cancel(call)
            self.peer.forget(call)
            raise
        finally:
            self.origins.pop(call, None)
        if not reply.ok and self.alive:
            self.refused(method, params, reply)
        return reply

    async def _within(self, answer: asyncio.Future[Reply], method: str, patience: float | None) -> Reply:
        """Wait for the answer; raises `SilentAgent` if the agent sends nothing for `patience` seconds.

        An agent may be silent while it is paused, and while a request of its own is open.
        """
        while patience is not None:
            reads, excused = self.peer.reads, self._may_be_silent
            await asyncio.wait((answer,), timeout=patience)
            if answer.done():
                break
            if reads == self.peer.reads and not excused and not self._may_be_silent:
                raise SilentAgent(
                    INTERNAL_ERROR,
                    f"The agent {self.name} did not answer {method}: it has said nothing for {patience:g} s "
                    f"(limits.session_timeout). Try again, or see with `dragoman agents check {self.name}` whether it "
                    f"works{self._stderr()}",
                    {"reason": "agent_unavailable", "agent": self.name},
                )
        return await answer

    @property
    def _may_be_silent(self) -> bool:
        return self.peer.waits_for_us or bool(self._holds)

    async def ask(
        self,
        method: str,
        params: bytes,
        timeout: float,
        heard: Callable[[Reply], None] | None = None,
    ) -> Reply:
        """`call` that waits no longer than `timeout`; returns an error reply if there is no answer."""
        try:
            return await asyncio.wait_for(self.call(method, params, heard=heard), timeout)
        except TimeoutError:
            return Reply.failed(
                internal(f"The agent {self.name} did not answer {method} within {timeout:g} s")
            )

    def overloaded(self) -> bool:
        """Whether too much waits to be sent, because the agent does not read its stdin."""
        return self.handle is not None and self.handle.backlog > limits.AGENT_BACKLOG_BYTES

    # -- back-pressure

    def hold(self, holder: object) -> None:
        """Stop reading from this agent until `holder` releases it."""
        if not self._holds and self.handle is not None:
            self.handle.pause()
        self._holds.add(holder)

    def release(self, holder: object) -> None:
        self._holds.discard(holder)
        if not self._holds and self.handle is not None:
            self.handle.resume()

    def _stderr(self) -> str:
        tail = self.handle.end().stderr_tail.strip() if self.handle is not None else ""
        return f". Its last lines on stderr:\n{self.outside(tail)}" if tail else ""

    def outside(self, text: str) -> str:
        """A text from the agent for the user, with host paths."""
        return text if self.paths is None else self.paths.to_host.text(text)
