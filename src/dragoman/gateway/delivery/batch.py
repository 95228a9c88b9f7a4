"""Events that were published in one turn of the event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dragoman.gateway.delivery import events

if TYPE_CHECKING:
    from dragoman.gateway.client import ClientConnection
    from dragoman.gateway.delivery.actions import Action


class Batch:
    """Events that are stored and handed over together."""

    __slots__ = (
        "actions",
        "after",
        "author",
        "authors",
        "events",
        "first_seq",
        "gap",
        "kept",
        "last_seq",
        "lines",
        "varied",
    )

    def __init__(self) -> None:
        self.first_seq = 0
        self.last_seq = 0
        self.kept = True
        """Its events have numbers, from `first_seq` on."""
        self.after = 0
        """The last event that is stored, for a batch that is not."""
        self.gap = False
        """Its one event says how many before it were not kept."""
        self.events: list[bytes] = []
        self.lines: list[bytes] = []
        """The updates among them that have no author: every attachment is shown these."""
        self.authors: dict[int, ClientConnection] = {}
        """Author per index in `events`; authors are not shown their own events."""
        self.author: ClientConnection | None = None
        """The author of all events in `authors`; None if there are several, or none."""
        self.varied = False
        """Not every client may be sent the same bytes: some speak of one client's own terminals."""
        self.actions: list[Action] = []

    def number(self, first_seq: int) -> None:
        self.first_seq = first_seq
        self.last_seq = first_seq + len(self.events) - 1

    def add_authored(self, event: bytes, author: ClientConnection) -> None:
        self.author = author if not self.authors or self.author is author else None
        self.authors[len(self.events)] = author
        self.events.append(event)

    @property
    def size(self) -> int:
        return sum(map(len, self.events))


class Missing(msgspec.Struct, frozen=True):
    """Events that were shown and not kept."""

    events: int
    since: str


def gap_batch(missing: Missing) -> Batch:
    """A record in the place of what is missing."""
    batch = Batch()
    batch.gap = True
    batch.events.append(events.record("unkept", events=missing.events, since=missing.since))
    return batch
