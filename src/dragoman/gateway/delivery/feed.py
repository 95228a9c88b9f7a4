"""The one ordered stream of a session towards its clients (G-005, G-080).

Everything that a client may see of a session passes through here: updates as bytes, and everything else (a prompt's
answer, a question) as an action that runs when all that was published before it has been handed over.

    DirectFeed    published, sent                       no journal: a slow client holds its agents back
    JournalFeed   published, stored, then sent          a slow client reads on from the journal at its own pace
                  (journal_feed.py)
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol

from dragoman.gateway.delivery import actions
from dragoman.gateway.delivery.actions import Action
from dragoman.gateway.delivery.attachment import Attachment
from dragoman.gateway.delivery.journal_attachment import JournalAttachment

if TYPE_CHECKING:
    from dragoman.gateway.client import ClientConnection

log = logging.getLogger(__name__)

REPLAY = "_dragoman/replay"
"""Said to another process of ours: what follows is the replay that it asked for."""
REPLAYED = "_dragoman/replayed"
"""And here it ends."""


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
        self.kept_elsewhere = True
        """What another process says next is in its journal."""
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
        self._journal_sinks: list[JournalAttachment] = []
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
        if self._journal_sinks:
            self._journal_sink(tag + line)

    def reaches(self, author: ClientConnection) -> bool:
        return any(each.reads_journal or each.client is not author for each in self.attachments)

    def record(self, event: bytes) -> None:
        if self._journal_sinks:
            self._journal_sink(event)

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
        if self.waiting is not None and not self.waiting.reads_journal:
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
            if (
                attachment.reads_journal or attachment in self._early
            ):  # those know, and these were shown nothing
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
            shown = [each for each in shown if each.reads_journal or each.position < lacked]
        self._shown = shown
        self._journal_sinks = [each for each in shown if isinstance(each, JournalAttachment)]

    @property
    def seq(self) -> int:
        """How many events those with a tap were shown: nothing is kept, so that nobody else has numbers."""
        return self._seq

    def _journal_sink(self, event: bytes) -> None:
        self._seq += 1
        for journal_sink in self._journal_sinks:
            journal_sink.show_unkept(self._seq, event, kept_elsewhere=self.kept_elsewhere)
