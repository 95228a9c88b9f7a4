"""Passes a session's messages to the present listener of a gateway client, or drops them if there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from dragoman.gateway.session.session import Session
from dragoman.server.fronts.event_stream import EventStream
from dragoman.wire.errors import invalid_request


class Sink(Protocol):
    """Receives the messages of a session."""

    @property
    def writable(self) -> bool: ...

    def send(self, message: bytes) -> None: ...

    def send_event(self, seq: int, message: bytes) -> None: ...

    def close(self) -> None: ...


class SessionListeners:
    """Implements `Outlet`."""

    def __init__(self) -> None:
        self.on_room: Callable[[], None] | None = None
        self.sink: Sink | None = None
        self.session: Session | None = None
        self.ends_with_session = False
        self._holding = False

    def listen(self) -> EventStream:
        """Send the session's messages to a new stream from now on."""
        stream = EventStream(self._changed, keep=0)
        stream.on_room = self._room
        self.hear(stream)
        return stream

    def hear(self, sink: Sink) -> None:
        """Set the sink; raises if there is one, as a session has one turn at a time."""
        if self.sink is not None:
            raise invalid_request("A prompt is already in flight in this session", "prompt_in_flight")
        self.sink = sink

    def stop(self) -> None:
        """Remove the sink; an agent that waited for its reader continues."""
        self.sink = None
        self._hold(False)
        self._room()

    def end(self) -> None:
        """Close the sink: no more messages will come."""
        if self.sink is not None:
            self.sink.close()

    # -- Outlet

    def send(self, message: bytes) -> None:
        if self.sink is not None:
            self.sink.send(message)

    def send_event(self, seq: int, message: bytes) -> None:
        if self.sink is not None:
            self.sink.send_event(seq, message)

    @property
    def writable(self) -> bool:
        return self.sink is None or self.sink.writable

    def detached(self) -> None:
        if self.ends_with_session:
            self.end()

    def _room(self) -> None:
        if self.on_room is not None:
            self.on_room()

    def _changed(self, size: int) -> None:
        self._hold(not self.writable)

    def _hold(self, hold: bool) -> None:
        """Pause or resume the agent for a slow reader if there is no journal to read on from (G-086)."""
        if hold == self._holding:
            return
        self._holding = hold
        session = self.session
        if session is None or session.agent is None:
            return
        if not hold:
            session.agent.release(self)
        elif session.journal is None or session.journal.broken:
            session.agent.hold(self)
