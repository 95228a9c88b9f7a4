"""The port between a byte stream and the messages on it.

A transport, an agent process and an adapter all look the same from here: a `Link` takes whole messages and hands whole
messages, in order, to its `LinkHandler`. A link writes what was sent during one turn of the event loop with one write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from dragoman.wire.framing import Frame


class Link(Protocol):
    """A two-way stream of whole messages."""

    def send(self, message: bytes) -> None:
        """Queue one message, without framing; never blocks, silently ignored after `close`."""

    def pause(self) -> None:
        """Stop reading from the peer (back-pressure); idempotent."""

    def resume(self) -> None:
        """Read on; idempotent."""

    def close(self) -> None:
        """Send what is queued, then end the stream."""

    @property
    def backlog(self) -> int:
        """Bytes queued towards the peer that it has not taken yet."""


class Outlet(Protocol):
    """One session's own way to a client, with a pace of its own."""

    on_room: Callable[[], None] | None
    """Called when `writable` is true again."""

    def send(self, message: bytes) -> None: ...

    def send_event(self, seq: int, message: bytes) -> None:
        """Send an update by its number in the journal."""

    @property
    def writable(self) -> bool: ...

    def detached(self) -> None:
        """The session sends nothing here any more."""


@runtime_checkable
class BulkLink(Protocol):
    """A link that takes many messages for less than one by one."""

    def send_all(self, messages: list[bytes]) -> None: ...


@runtime_checkable
class FlushLink(Protocol):
    """A link that can write before the end of this turn of the event loop."""

    def flush(self) -> None:
        """Write what is queued now."""


@runtime_checkable
class SplitLink(Protocol):
    """A link whose sessions travel apart, each on a stream of its own."""

    def outlet(self, session_id: str) -> Outlet: ...


@runtime_checkable
class CodedLink(Protocol):
    """A link that can say why it ends."""

    def close_with(self, code: int, reason: str = "") -> None: ...


class JournalSink(Protocol):
    """Where one session's journal flows to."""

    def events(self, first_seq: int, ts: int, events: list[bytes]) -> None:
        """Adjacent events from `first_seq` on; `ts` is when they were stored, in milliseconds since 1970."""

    def unkept(self, ts: int, events: list[bytes]) -> None:
        """Events that are in no journal, and so have no number."""

    def missing(self, first_seq: int, last_seq: int, damaged: bool) -> None:
        """These events should come next, and are not kept any more, or are `damaged`."""


@runtime_checkable
class JournalLink(Protocol):
    """A link that takes the journal itself instead of updates: records too, and what its own client wrote."""

    def journal_sink(self, session_id: str) -> JournalSink: ...


class LinkHandler(Protocol):
    """Who receives what a link reads. All calls come from the event loop, one at a time."""

    def link_opened(self, link: Link) -> None:
        """Comes first, before anything is read: from now on `link` can be sent to."""

    def link_messages(self, frames: list[Frame]) -> None:
        """The frames that one read completed, in order."""

    def link_writable(self, writable: bool) -> None:
        """False: the peer reads too slowly, stop feeding it; True: go on."""

    def link_closed(self, reason: str | None) -> None:
        """No more messages will come; `reason` is None for an orderly end."""
