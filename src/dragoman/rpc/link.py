"""The interface between a byte stream and the messages on it.

Transports, agent processes and adapters all implement `Link`: a link takes whole messages, and passes whole messages in
order to its `LinkHandler`. A link joins the messages sent during one turn of the event loop into one write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from dragoman.wire.framing import Frame


class Link(Protocol):
    """A two-way stream of whole messages."""

    def send(self, message: bytes) -> None:
        """Queue one message, without framing; never blocks. Messages sent after `close` are dropped."""

    def pause(self) -> None:
        """Stop reading from the peer (back-pressure); idempotent."""

    def resume(self) -> None:
        """Read on; idempotent."""

    def close(self) -> None:
        """Send the queued messages, then end the stream."""

    @property
    def backlog(self) -> int:
        """Bytes queued to the peer that it has not read yet."""


class Outlet(Protocol):
    """One session's stream to a client, with back-pressure of its own."""

    on_room: Callable[[], None] | None
    """Called when `writable` is true again."""

    def send(self, message: bytes) -> None: ...

    def send_event(self, seq: int, message: bytes) -> None:
        """Send an update together with its number in the journal."""

    @property
    def writable(self) -> bool: ...

    def detached(self) -> None:
        """Called when the session sends nothing more here."""


@runtime_checkable
class BulkLink(Protocol):
    """A link that takes many messages in one call, which is cheaper than one by one."""

    def send_all(self, messages: list[bytes]) -> None: ...


@runtime_checkable
class FlushLink(Protocol):
    """A link that can write before the end of this turn of the event loop."""

    def flush(self) -> None:
        """Write the queued messages now."""


@runtime_checkable
class SplitLink(Protocol):
    """A link with a separate stream for each session."""

    def outlet(self, session_id: str) -> Outlet: ...


@runtime_checkable
class CodedLink(Protocol):
    """A link that can send the peer a close code and a reason."""

    def close_with(self, code: int, reason: str = "") -> None: ...


class JournalSink(Protocol):
    """Receives one session's journal."""

    def events(self, first_seq: int, ts: int, events: list[bytes]) -> None:
        """Consecutive events from `first_seq` on; `ts` is when they were stored, in milliseconds since 1970."""

    def unkept(self, ts: int, events: list[bytes]) -> None:
        """Events that are not in the journal and so have no number."""

    def missing(self, first_seq: int, last_seq: int, damaged: bool) -> None:
        """The next events, which are no longer stored, or are `damaged`."""


@runtime_checkable
class JournalLink(Protocol):
    """A link that takes the journal instead of updates: also records, and the events its own client wrote."""

    def journal_sink(self, session_id: str) -> JournalSink: ...


class Unpaused:
    """The part of a `Link` whose messages are handled as they come: there is nothing to pause."""

    def pause(self) -> None:
        """Does nothing."""

    def resume(self) -> None:
        """Does nothing."""


class LinkHandler(Protocol):
    """Receives the messages of a link; all calls come from the event loop, one at a time.

    A subclass ignores what it does not define.
    """

    def link_opened(self, link: Link) -> None:
        """Called first, before anything is read: from now on `link` accepts messages."""
        return

    def link_messages(self, frames: list[Frame]) -> None:
        """The frames that one read completed, in order."""
        return

    def link_writable(self, writable: bool) -> None:
        """False: the peer reads too slowly, stop sending; True: continue."""
        return

    def link_closed(self, reason: str | None) -> None:
        """No more messages will come; `reason` is None for an orderly end."""
        return
