"""A batch: the events published in one turn of the event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dragoman.gateway.delivery import events

if TYPE_CHECKING:
    from dragoman.gateway.delivery.actions import Action


class Batch(msgspec.Struct, eq=False):
    """Events that are stored and sent to attachments together."""

    first_seq: int = 0
    last_seq: int = 0
    kept: bool = True
    """The batch is stored: its events have numbers, from `first_seq` on."""
    after: int = 0
    """For a batch that is not stored: the number of the last stored event before it."""
    gap: bool = False
    """The batch has one event: the record that counts the events before it that were not stored."""
    events: list[bytes] = []
    lines: list[bytes] = []
    """The updates in `events` that have no author: every attachment is sent these."""
    authors: dict[int, object] = {}
    """Author per index in `events`; authors are not sent their own events."""
    author: object | None = None
    """The author of all events in `authors`; None if there are several, or none."""
    per_client: bool = False
    """Some events refer to one client's own terminals, so that clients are sent different bytes."""
    actions: list[Action] = []

    def add_authored(self, event: bytes, author: object) -> None:
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
    return Batch(gap=True, events=[events.record("unkept", events=missing.events, since=missing.since)])
