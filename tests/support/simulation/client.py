"""Clients of simulated processes: they send without waiting, and note everything they are sent."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dragoman.gateway.access.client import Terms
from dragoman.rpc.link import Link
from dragoman.wire.framing import Frame
from support.simulation.link import SimulatedLink, connect

if TYPE_CHECKING:
    from support.simulation.process import SimulatedProcess

Message = dict[str, Any]

KINDS = {
    "editor": Terms(start_ahead=False),  # its sessions end with it
    "network": Terms(start_ahead=False, spare=False, keep_sessions=True),
    "page": Terms(start_ahead=False, spare=False, keep_sessions=True, restart_on_load=False),
}
ATTACHES = ("session/new", "session/load", "session/resume")


@dataclass(eq=False)
class Call:
    """One request of a client; moments are counted by `World.next`."""

    method: str
    params: Message
    session: str | None
    sent: int
    known: int = 0
    """The number of the last event that was stored when it was sent."""
    received: int = 0
    """When the gateway read it; 0: not yet."""
    replied: int = 0
    """When the gateway sent the answer."""
    answer: Message | None = None

    @property
    def ok(self) -> bool:
        return self.answer is not None and "result" in self.answer

    @property
    def stop_reason(self) -> str | None:
        return self.answer["result"].get("stopReason") if self.answer is not None and self.ok else None

    def __repr__(self) -> str:
        told = (
            "unanswered"
            if self.answer is None
            else json.dumps(self.answer.get("error") or self.answer.get("result"))
        )
        return f"<{self.method} {self.session} {json.dumps(self.params.get('_meta'))} {told}>"


@dataclass(eq=False)
class Event:
    """One update that a client was sent."""

    seq: int | None
    update: Message

    @property
    def text(self) -> str:
        content = self.update.get("content")
        return str(content.get("text", "")) if isinstance(content, dict) else ""

    def __repr__(self) -> str:
        return f"<{self.seq} {self.update.get('sessionUpdate')} {self.text}>"


@dataclass
class Stream:
    """What one client sent and was sent of one session, in order: a call when sent, again when answered, and events."""

    entries: list[Call | Event] = field(default_factory=list)


class SimulatedClient:
    """`LinkHandler` of a client's end of its connection."""

    link: Link

    def __init__(self, process: SimulatedProcess, kind: str, *, numbers: bool) -> None:
        self.world = process.world
        self.process = process
        self.kind = kind
        self.numbers = numbers
        self.gone = False
        """Its connection has ended, or it ends it."""
        self.calls: dict[int, Call] = {}
        self.streams: dict[str, Stream] = {}
        self.questions: dict[int, Message] = {}
        """Open permission requests by the gateway's id."""
        self.withdrawn: set[int] = set()
        client, peer = process.context.copy().run(process.accept, KINDS[kind])
        self.connection = client
        ends = (self, self.world.outside), (peer, process.context)
        _, there = connect(self.world.loop, *ends, SimulatedLink)
        process.links.append(there)
        there.sent, there.read = self._replied, self._received
        own = {"seq": numbers}
        capabilities = {"session": {"notices": {}}, "_meta": {"dragoman": own}}
        self.call("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities})

    def __repr__(self) -> str:
        return f"<{self.kind} of process {self.process.number}{', gone' if self.gone else ''}>"

    # -- sending

    def call(self, method: str, params: Message, session: str | None = None) -> Call:
        id = len(self.calls) + 1
        if session is not None:
            params = {"sessionId": session, **params}
        call = self.calls[id] = Call(method, params, session, self.world.next())
        if session is not None:
            call.known = max(self.world.journals.get(session, {}), default=0)
            self.stream(session).entries.append(call)
        self._send({"id": id, "method": method, "params": params})
        return call

    def notify(self, method: str, params: Message) -> None:
        self._send({"method": method, "params": params})

    def cancel_last(self) -> None:
        """Cancel the last request by its id."""
        self.notify("$/cancel_request", {"requestId": len(self.calls)})

    def answer(self, option: str) -> None:
        """Answer the oldest open question."""
        if self.questions:
            id = next(iter(self.questions))
            del self.questions[id]
            self._send({"id": id, "result": {"outcome": {"outcome": "selected", "optionId": option}}})

    def leave(self) -> None:
        self.gone = True
        self.link.close()

    def stream(self, session: str) -> Stream:
        return self.streams.setdefault(session, Stream())

    def texts(self, session: str) -> list[str]:
        """What this client saw the agent say."""
        return [entry.text for entry in self.stream(session).entries if isinstance(entry, Event)]

    def last_seq(self, session: str) -> int:
        seen = [entry.seq or 0 for entry in self.stream(session).entries if isinstance(entry, Event)]
        return max(seen, default=0)

    def _send(self, message: Message) -> None:
        self.link.send(json.dumps({"jsonrpc": "2.0", **message}).encode())

    # -- what the gateway's end of the connection does

    def _received(self, line: bytes) -> None:
        message = json.loads(line)
        if "method" in message and "id" in message:
            self.calls[message["id"]].received = self.world.next()

    def _replied(self, line: bytes) -> None:
        message = json.loads(line)
        if "method" not in message:
            self.calls[message["id"]].replied = self.world.next()

    # -- LinkHandler

    def link_opened(self, link: Link) -> None:
        self.link = link

    def link_writable(self, writable: bool) -> None:
        pass

    def link_closed(self, reason: str | None) -> None:
        self.gone = True

    def link_messages(self, frames: list[Frame]) -> None:
        for frame in frames:
            assert isinstance(frame, bytes)
            message = json.loads(frame)
            if "method" not in message:
                self._answered(message)
            elif "id" in message:
                self.questions[message["id"]] = message["params"]
            elif message["method"] == "session/update":
                self._updated(message["params"])
            elif message["method"] == "$/cancel_request":
                call = message["params"]["requestId"]
                self.world.expect(call not in self.withdrawn, f"question {call} was withdrawn twice")
                self.withdrawn.add(call)
                self.questions.pop(call, None)

    def _answered(self, message: Message) -> None:
        call = self.calls[message["id"]]
        self.world.expect(call.answer is None, f"{call} was answered again with {message}")
        call.answer = message
        if call.method == "session/new" and call.ok:
            call.session = message["result"]["sessionId"]
            assert call.session is not None
            self.world.sessions.append(call.session)
            self.stream(call.session).entries.append(call)
        if call.session is not None:
            self.stream(call.session).entries.append(call)

    def _updated(self, params: Message) -> None:
        own = (params.get("_meta") or {}).get("dragoman") or {}
        self.stream(params["sessionId"]).entries.append(Event(own.get("seq"), params["update"]))
