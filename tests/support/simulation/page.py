"""Pages of a simulated process: they send commands of the bridge without waiting, and note what they are sent."""

from __future__ import annotations

import json
from typing import Any

from dragoman.bridge.bridge import Bridge
from dragoman.gateway.access.identity import LOCAL, Identity
from dragoman.gateway.access.rate_limit import RateLimit
from dragoman.rpc.link import Link
from dragoman.wire.framing import Frame
from support.simulation.link import SimulatedLink, connect
from support.simulation.process import SimulatedProcess

Message = dict[str, Any]


class OneToken:
    """Implements `Tokens`: every page has the same token, which stays valid."""

    def mark(self, identity: Identity) -> str:
        return "mark"

    def current(self, name: str, mark: str) -> Identity | str:
        return LOCAL


def bridge_of(process: SimulatedProcess) -> Bridge:
    return process.context.copy().run(Bridge, process.gateway, list, OneToken())


class SimulatedPage:
    """`LinkHandler` of a page's end of its connection."""

    link: Link

    def __init__(self, process: SimulatedProcess, bridge: Bridge) -> None:
        self.events: list[Message] = []
        self._world = process.world
        with process.world.loop.running():
            client = process.context.copy().run(bridge.connect, LOCAL, RateLimit(LOCAL.quota))
            ends = (self, process.world.outside), (client, process.context)
            _, there = connect(process.world.loop, *ends, SimulatedLink)
        process.links.append(there)

    def send(self, kind: str, session: str, **fields: object) -> str:
        """Send a command; returns its id."""
        id = f"{kind}-{self._world.next()}"
        command = {"type": kind, "sessionId": session, "clientMessageId": id, **fields}
        self.link.send(json.dumps(command).encode())
        return id

    def answer(self, id: str) -> Message | None:
        """The `ack` or `error` for a command; None if there is none yet."""
        answers = (each for each in self.events if each["type"] in ("ack", "error"))
        return next((each for each in answers if each.get("clientMessageId") == id), None)

    def types(self) -> list[str]:
        return [each["type"] for each in self.events]

    def leave(self) -> None:
        self.link.close()

    # -- LinkHandler

    def link_opened(self, link: Link) -> None:
        self.link = link

    def link_writable(self, writable: bool) -> None:
        pass

    def link_closed(self, reason: str | None) -> None:
        pass

    def link_messages(self, frames: list[Frame]) -> None:
        for frame in frames:
            assert isinstance(frame, bytes)
            self.events.append(json.loads(frame))
