"""The one ordered stream of a session towards its clients (G-005, G-080).

Everything that a client may see of a session passes through here: updates as bytes, and everything else (a prompt's
answer, a question) as an action that runs when all that was published before it has been handed over.

    DirectFeed    published, sent                       no journal: a slow client holds its agents back
    JournalFeed   published, stored, then sent          a slow client reads on from the journal at its own pace

A batch is what was published in one turn of the event loop; it is stored with one append and handed to each
attachment at once. An action closes the batch before it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from dragoman.gateway import actions
from dragoman.gateway.actions import Action
from dragoman.gateway.attachment import Attachment
from dragoman.gateway.ports.store import Store, StoreError
from dragoman.gateway.tapped import TappedAttachment

if TYPE_CHECKING:
    from dragoman.gateway.client import ClientConnection

log = logging.getLogger(__name__)

REPLAY = "_dragoman/replay"
"""Said to another process of ours: what follows is the replay that it asked for."""
REPLAYED = "_dragoman/replayed"
"""And here it ends."""
MAX_AUTHORS = 1000
"""Only a client that is far behind needs old ones; it may then see a prompt of its own again."""


class Feed(Protocol):
    attachments: list[Attachment]
    """Everybody who looks; changed by `add` and `remove` alone."""
    delivered: int
    """The number of the last event that was handed over; without a journal 0, or what another process said."""

    @property
    def seq(self) -> int:
        """The number of the last event that was published."""

    def publish(
        self, tag: bytes, line: bytes, author: ClientConnection | None = None, varied: bool = False
    ) -> None:
        """Show one update to every attachment but its author's, who knows it already.

        `varied`: it speaks of one client's own terminals, so others are shown it differently.
        """

    def reaches(self, author: ClientConnection) -> bool:
        """Whether what this client says goes to anybody: another one, or a journal."""

    def record(self, event: bytes) -> None:
        """Journal what is no update."""

    def then(self, action: Action) -> None:
        """Run `action` once everything published so far has been handed over; its failure is its own."""

    def add(self, attachment: Attachment) -> None: ...

    def remove(self, attachment: Attachment) -> None: ...

    def agent_gone(self) -> None:
        """A replay of its has come to its end."""


class DirectFeed:
    """Without a journal nothing has to be written first: what is published is sent."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self.attachments: list[Attachment] = []
        self.waiting: Attachment | None = None
        """Whose replay comes next."""
        self.replaying = asyncio.Lock()
        """Held while one is under way: whatever comes then belongs to it."""
        self.delivered = 0
        self._early: set[Attachment] = set()
        """Who waits for a replay: what is published before it is in it."""
        self._only: Attachment | None = None
        """A replay is for the one who asked for it."""
        self._lacked: int | None = None
        """The event that comes next, of a replay of which some have a part already."""
        self._over = asyncio.Event()
        self._over.set()
        self._shown: list[Attachment] = []
        """To whom things are shown now."""
        self._taps: list[TappedAttachment] = []
        self._seq = 0

    def publish(
        self, tag: bytes, line: bytes, author: ClientConnection | None = None, varied: bool = False
    ) -> None:
        for attachment in self._shown:
            if attachment.client is not author:
                try:
                    attachment.send(attachment.own_view(line) if varied else line)
                except Exception:  # one client's trouble must not cost the others the event
                    log.exception("event could not be shown", extra={"session": self._session_id})
        if self._taps:
            self._tap(tag + line)

    def reaches(self, author: ClientConnection) -> bool:
        return any(each.tapped or each.client is not author for each in self.attachments)

    def record(self, event: bytes) -> None:
        if self._taps:
            self._tap(event)

    def then(self, action: Action) -> None:
        actions.run(action, self._session_id)

    def add(self, attachment: Attachment) -> None:
        self.attachments.append(attachment)
        self._look()

    def remove(self, attachment: Attachment) -> None:
        self.attachments = [each for each in self.attachments if each is not attachment]
        self._early.discard(attachment)
        self._look()

    # -- replays

    def expect_replay(self, attachment: Attachment) -> None:
        self._early.add(attachment)
        self._look()

    def forget_replay(self, attachment: Attachment) -> None:
        """It will not come."""
        self._early.discard(attachment)
        self._look()

    def replay_begins(self) -> None:
        """What comes from now on was said before, to all but those who wait for it: one, or, if nobody, all."""
        self._over.clear()
        self._only = self.waiting
        if self.waiting is not None:
            self._early.discard(self.waiting)
        self._look()

    def replayed_until(self, position: int) -> None:
        """The replay that another process told came to its end, which is event `position`."""
        if self.waiting is not None and not self.waiting.tapped:
            self.waiting.position = position
        self.replay_ended()

    def replay_ended(self) -> None:
        if self.waiting is not None:
            self._early.discard(self.waiting)
        self._only = self.waiting = self._lacked = None
        self._over.set()
        self._look()

    def show_after(self, seq: int | None) -> None:
        """What comes next is event `seq`, for those whose position is before it; None: for all."""
        self._lacked = seq
        self._look()

    def lost(self, position: int, replayed: int) -> None:
        """The process that said all this is gone: note which event each client has.

        `position` is the last one of those who follow; a replay that was under way had come to `replayed`.
        """
        self.delivered = max(self.delivered, position)
        for attachment in self.attachments:
            if attachment.tapped or attachment in self._early:  # those know, and these were shown nothing
                continue
            has = replayed if attachment is self._only else position
            attachment.position = max(attachment.position, has)

    def agent_gone(self) -> None:
        self.replay_ended()

    async def replayed(self) -> None:
        """Wait for the end of one that has begun."""
        await self._over.wait()

    def _look(self) -> None:
        only, early, lacked = self._only, self._early, self._lacked
        shown = [each for each in self.attachments if each not in early and only in (None, each)]
        if lacked is not None:
            shown = [each for each in shown if each.tapped or each.position < lacked]
        self._shown = shown
        self._taps = [each for each in shown if isinstance(each, TappedAttachment)]

    @property
    def seq(self) -> int:
        """How many events those with a tap were shown: nothing is kept, so that nobody else has numbers."""
        return self._seq

    def _tap(self, event: bytes) -> None:
        self._seq += 1
        for tap in self._taps:
            tap.show_unkept(self._seq, event)


class Batch:
    """Events that are stored and handed over together."""

    __slots__ = ("actions", "after", "authors", "events", "first_seq", "lines", "stored", "varied")

    def __init__(self) -> None:
        self.first_seq = 0
        self.stored = True
        self.after = 0
        """The last event that is stored, for a batch that is not."""
        self.events: list[bytes] = []
        self.lines: list[bytes] = []
        """What all attachments see of them."""
        self.authors: dict[int, ClientConnection] = {}
        """Who is not shown a line, because it is his own, by its index in `events`."""
        self.varied = False
        """Not every client may be sent the same bytes: some speak of one client's own terminals."""
        self.actions: list[Action] = []

    @property
    def last_seq(self) -> int:
        return self.first_seq + len(self.events) - 1


class JournalFeed:
    """Written before it is shown (issue of trust: what a client saw is never lost)."""

    def __init__(
        self,
        store: Store,
        session_id: str,
        epoch: int,
        last_seq: int,
        on_error: Callable[[StoreError], None],
        on_congestion: Action,
    ) -> None:
        self.attachments: list[Attachment] = []
        self.epoch = epoch
        self.delivered = last_seq
        self.store = store
        self.trouble: StoreError | None = None
        """Why the journal cannot be written: events are shown, but not kept."""
        self.authors: dict[int, ClientConnection] = {}
        """Who wrote what in this process's life, by seq: nobody is shown his own again."""
        self._session_id = session_id
        self._next = last_seq + 1
        self._on_error = on_error
        self._on_congestion = on_congestion
        self._open: Batch | None = None
        self._stored: deque[Batch] = deque()
        self._in_flight = 0
        self._loop = asyncio.get_running_loop()

    @property
    def broken(self) -> bool:
        return self.trouble is not None

    @property
    def seq(self) -> int:
        """The number of the last event that was published."""
        return self._next - 1 + (len(self._open.events) if self._open is not None else 0)

    def publish(
        self, tag: bytes, line: bytes, author: ClientConnection | None = None, varied: bool = False
    ) -> None:
        batch = self._open or self._begin()
        if author is not None:
            batch.authors[len(batch.events)] = author
        if varied:
            batch.varied = True
        batch.events.append(tag + line)
        batch.lines.append(line)

    def reaches(self, author: ClientConnection) -> bool:
        return True

    def record(self, event: bytes) -> None:
        (self._open or self._begin()).events.append(event)

    def add(self, attachment: Attachment) -> None:
        self.attachments.append(attachment)

    def remove(self, attachment: Attachment) -> None:
        self.attachments = [each for each in self.attachments if each is not attachment]

    def agent_gone(self) -> None:
        """Replays come from the journal."""

    def then(self, action: Action) -> None:
        if self._open is not None:
            self._open.actions.append(action)
            self._flush(self._open)
        elif self._stored:
            self._stored[-1].actions.append(action)
        else:
            actions.run(action, self._session_id)

    def _begin(self) -> Batch:
        batch = self._open = Batch()
        self._loop.call_soon(self._flush, batch)
        return batch

    def _flush(self, batch: Batch) -> None:
        if self._open is not batch:
            return
        self._open = None
        batch.first_seq = self._next
        self._next += len(batch.events)
        self._stored.append(batch)
        if self.broken:
            self._hand_over_unstored()
            return
        for index, author in batch.authors.items():
            self.authors[batch.first_seq + index] = author
            if len(self.authors) > MAX_AUTHORS:
                del self.authors[next(iter(self.authors))]
        self._in_flight += 1
        self.store.append(self._session_id, self.epoch, batch.first_seq, batch.events, self._done)
        if self.store.congested:
            self._on_congestion()

    def _done(self, error: StoreError | None) -> None:
        """The store answers in the order of the appends."""
        self._in_flight -= 1
        first = error if self.trouble is None else None
        self.trouble = self.trouble or first
        self._hand_over()
        if self.broken:
            self._hand_over_unstored()
        if first is not None:
            self._on_error(first)  # last: it publishes

    def _hand_over_unstored(self) -> None:
        """What was published since the journal broke, once everything before it is answered for."""
        while self._stored and not self._in_flight:
            self._hand_over()

    def _hand_over(self) -> None:
        batch = self._stored.popleft()
        if self.broken:
            batch.stored, batch.after = False, self.delivered
        else:
            self.delivered = batch.last_seq
        for attachment in self.attachments:
            try:
                attachment.push(batch)
            except (
                Exception
            ):  # one client's trouble must not cost the others their events, nor anybody an answer
                log.exception("events could not be shown", extra={"session": self._session_id})
        for action in batch.actions:
            actions.run(action, self._session_id)
