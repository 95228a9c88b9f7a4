"""A batch: the events published in one turn of the event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dragoman.gateway.delivery import events

if TYPE_CHECKING:
    from dragoman.gateway.client import ClientConnection
    from dragoman.gateway.delivery.actions import Action


class Batch:
    """Events that are stored and sent to attachments together."""

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
        """The batch is stored: its events have numbers, from `first_seq` on."""
        self.after = 0
        """For a batch that is not stored: the number of the last stored event before it."""
        self.gap = False
        """The batch has one event: the record that counts the events before it that were not stored."""
        self.events: list[bytes] = []
        self.lines: list[bytes] = []
        """The updates in `events` that have no author: every attachment is sent these."""
        self.authors: dict[int, ClientConnection] = {}
        """Author per index in `events`; authors are not sent their own events."""
        self.author: ClientConnection | None = None
        """The author of all events in `authors`; None if there are several, or none."""
        self.varied = False
        """Some events refer to one client's own terminals, so that clients are sent different bytes."""
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
    """Events that were sent to clients but not stored."""

    events: int
    since: str


def gap_batch(missing: Missing) -> Batch:
    """A batch with one record, which counts the events that are missing in the journal."""
    batch = Batch()
    batch.gap = True
    batch.events.append(events.record("unkept", events=missing.events, since=missing.since))
    return batch
