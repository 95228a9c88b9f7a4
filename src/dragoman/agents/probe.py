"""Starts an agent, sends `initialize`, and ends the agent: for `dragoman agents check`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from dragoman import __version__
from dragoman.agents.acp import ProcessLauncher
from dragoman.agents.custody import Custody
from dragoman.config.model import AgentConfig
from dragoman.gateway.ports.agent import AgentHandle, AgentUnavailable
from dragoman.gateway.ports.sandbox import Boxes
from dragoman.rpc.peer import Peer
from dragoman.rpc.request import Reply, Request
from dragoman.wire import limits
from dragoman.wire.errors import Malformed, RpcError, internal, method_not_found


@dataclass(frozen=True, slots=True)
class ProbeResult:
    ok: bool
    error: str | None
    seconds: float
    result: dict[str, Any] | None


MakeBoxes = Callable[[Custody], Boxes]


def probe(agent: AgentConfig, name: str, timeout: float, make_boxes: MakeBoxes | None = None) -> ProbeResult:
    """Probe an agent, in its sandbox with an empty workspace if it has one."""
    return asyncio.run(_probe(agent, name, timeout, make_boxes))


async def _probe(agent: AgentConfig, name: str, timeout: float, make_boxes: MakeBoxes | None) -> ProbeResult:
    custody = Custody()
    boxes = make_boxes(custody) if make_boxes is not None else None
    started = time.monotonic()
    handle: AgentHandle | None = None
    asker = _Asker()
    try:
        box = boxes.find(name, agent, None, None) if boxes is not None else None
        launcher = ProcessLauncher(custody, limits.MAX_MESSAGE_BYTES)
        handle = await launcher.launch(name, agent, asker.peer, None, box)
        asker.handle = handle
        reply = await asyncio.wait_for(asker.initialize(), timeout)
        seconds = time.monotonic() - started
        if reply.ok:
            return ProbeResult(True, None, seconds, msgspec.json.decode(reply.result))
        return ProbeResult(False, str(msgspec.json.decode(reply.error).get("message")), seconds, None)
    except AgentUnavailable as error:
        return ProbeResult(False, str(error), time.monotonic() - started, None)
    except TimeoutError:
        return ProbeResult(
            False, f"no answer to initialize within {timeout:g} s", time.monotonic() - started, None
        )
    finally:
        if handle is not None:
            await handle.stop()
        if boxes is not None:
            await boxes.close()
        await custody.close()


class _Asker:
    """A minimal client: sends `initialize` and refuses all requests."""

    def __init__(self) -> None:
        self.peer = Peer("The agent", self, strict=False)
        self.handle: AgentHandle | None = None

    async def initialize(self) -> Reply:
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        params = {
            "protocolVersion": 1,
            "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False},
            "clientInfo": {"name": "dragoman", "title": "Dragoman", "version": __version__},
        }
        self.peer.request(
            "initialize",
            msgspec.json.encode(params),
            lambda reply: None if future.done() else future.set_result(reply),
        )
        return await future

    def peer_request(self, request: Request) -> None:
        raise method_not_found(request.method)

    def peer_notification(self, method: str, params: bytes) -> None:
        pass

    def peer_malformed(self, frame: bytes, error: Malformed) -> bool:
        return False

    def peer_writable(self, writable: bool) -> None:
        pass

    def peer_closed(self, reason: str | None) -> RpcError | None:
        if self.handle is None:
            return None
        end = self.handle.end()
        if end.reason is not None:
            return internal(f"it {end.reason}", "agent_unavailable")
        tail = f": {end.stderr_tail.strip()}" if end.stderr_tail.strip() else ""
        return internal(f"it {end.describe()} before it answered{tail}", "agent_exited")
