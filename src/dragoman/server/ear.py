"""Where a session of a caller is heard: on a stream while somebody reads one, nowhere otherwise."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.gateway.session import Session
from dragoman.server.streams import EventStream


class Ear:
    """Implements `Outlet`."""

    def __init__(self) -> None:
        self.on_room: Callable[[], None] | None = None
        self.stream: EventStream | None = None
        self.session: Session | None = None
        self.ends_with_session = False
        self._holding = False

    def listen(self) -> EventStream:
        """What the session says goes on a new stream from now on."""
        self.stream = EventStream(self._changed, keep=0)
        self.stream.on_room = self._room
        return self.stream

    def stop(self) -> None:
        """The reader is gone; whoever waited for it goes on."""
        self.stream = None
        self._hold(False)
        self._room()

    def end(self) -> None:
        """Nothing will come any more."""
        if self.stream is not None:
            self.stream.close()

    # -- Outlet

    def send(self, message: bytes) -> None:
        if self.stream is not None:
            self.stream.send(message)

    def send_event(self, seq: int, message: bytes) -> None:
        if self.stream is not None:
            self.stream.send_event(seq, message)

    @property
    def writable(self) -> bool:
        return self.stream is None or self.stream.writable

    def detached(self) -> None:
        if self.ends_with_session:
            self.end()

    def _room(self) -> None:
        if self.on_room is not None:
            self.on_room()

    def _changed(self, size: int) -> None:
        self._hold(not self.writable)

    def _hold(self, hold: bool) -> None:
        """Without a journal to read on from later, a slow reader holds its agent back (G-086)."""
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
