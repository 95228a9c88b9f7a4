"""Starts an agent, sends `initialize`, and ends the agent: for `dragoman agents check`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dragoman import __version__
from dragoman.agents.custody import Custody
from dragoman.agents.launcher import ProcessLauncher
from dragoman.config.model import AgentConfig
from dragoman.gateway.ports.agent import AgentHandle, AgentUnavailable
from dragoman.gateway.ports.sandbox import Boxes
from dragoman.rpc.call import call
from dragoman.rpc.peer import Peer, Receiver
from dragoman.wire import limits
from dragoman.wire.errors import RpcError, internal


@dataclass(frozen=True, slots=True)
class ProbeResult:
    ok: bool
    error: str | None
    seconds: float
    result: dict[str, Any] | None


INITIALIZE = {
    "protocolVersion": 1,
    "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False},
    "clientInfo": {"name": "dragoman", "title": "Dragoman", "version": __version__},
}
MakeBoxes = Callable[[Custody], Boxes]


def probe(agent: AgentConfig, name: str, timeout: float, make_boxes: MakeBoxes | None = None) -> ProbeResult:
    """Probe an agent, in its sandbox with an empty workspace if it has one."""
    return asyncio.run(_probe(agent, name, timeout, make_boxes))


def probe_all(
    agents: Mapping[str, AgentConfig],
    timeout: float,
    make_boxes: MakeBoxes,
    told: Callable[[str, ProbeResult], object] = lambda name, result: None,
) -> dict[str, ProbeResult]:
    """Probe agents at the same time; `told` hears of each when it is done."""

    async def one(name: str, agent: AgentConfig) -> tuple[str, ProbeResult]:
        boxes = make_boxes if agent.sandbox is not None else None
        try:
            result = await _probe(agent, name, timeout, boxes)
        except Exception as error:  # noqa: BLE001 (such as a sandbox that is not there: one of many)
            result = ProbeResult(False, str(error), 0.0, None)
        told(name, result)
        return name, result

    async def all_of_them() -> dict[str, ProbeResult]:
        return dict(await asyncio.gather(*(one(name, agent) for name, agent in agents.items())))

    return asyncio.run(all_of_them())


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
        if asker.closed:
            await handle.stop()  # until then its stderr is not complete
            raise asker.describe_end(handle)
        result = await asyncio.wait_for(call(asker.peer, "initialize", INITIALIZE), timeout)
        return ProbeResult(True, None, time.monotonic() - started, result)
    except (AgentUnavailable, RpcError) as error:
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


class _Asker(Receiver):
    """A minimal client: sends `initialize` and refuses all requests."""

    def __init__(self) -> None:
        self.peer = Peer("The agent", self, strict=False)
        self.handle: AgentHandle | None = None
        self.closed = False
        """Whether the agent ended, perhaps before its launch returned."""

    def peer_closed(self, reason: str | None) -> RpcError | None:
        self.closed = True
        return self.describe_end(self.handle) if self.handle is not None else None

    def describe_end(self, handle: AgentHandle) -> RpcError:
        end = handle.end()
        if end.reason is not None:
            return internal(f"it {end.reason}", "agent_unavailable")
        tail = f": {end.stderr_tail.strip()}" if end.stderr_tail.strip() else ""
        return internal(f"it {end.describe()} before it answered{tail}", "agent_exited")
