"""The feed delivers a session's events to its clients, in one order (G-005, G-080).

All that a client gets of a session passes through here: updates as bytes, and everything else (a prompt's answer, a
question) as an action that runs after everything published before it has been sent.

    DirectFeed    published, sent                       no journal: a slow client pauses its agents
    JournalFeed   published, stored, then sent          a slow client catches up from the journal at its own pace
                  (journal_feed.py)
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import TYPE_CHECKING, Protocol

from dragoman.gateway.delivery import actions
from dragoman.gateway.delivery.actions import Action
from dragoman.gateway.delivery.attachment import Attachment
from dragoman.gateway.delivery.journal_attachment import JournalAttachment

if TYPE_CHECKING:
    pass

log = logging.getLogger(__name__)

REPLAY = "_dragoman/replay"
"""Notification to another process of Dragoman: the replay that it asked for begins."""
REPLAYED = "_dragoman/replayed"
"""Notification to another process of Dragoman: the replay has ended."""


class Feed(Protocol):
    attachments: list[Attachment]
    """All attachments of the session; changed by `add` and `remove` alone."""
    delivered: int
    """The number of the last event that was sent; without a journal 0, or the number that the owner reported."""

    @property
    def seq(self) -> int:
        """The number of the last event that was published."""

    def publish(
        self, tag: bytes, line: bytes, author: object | None = None, per_client: bool = False
    ) -> None:
        """Send one update to every attachment except the author's.

        `per_client`: clients are sent different lines, as the update refers to one client's terminals, for example.
        """

    def reaches(self, author: object) -> bool:
        """Whether a message of this client has any receiver: another client, or a journal."""

    def record(self, event: bytes) -> None:
        """Journal an event that is not an update."""

    def then(self, action: Action) -> None:
        """Run `action` once everything published so far has been sent; an exception in `action` is only logged."""

    def add(self, attachment: Attachment) -> None: ...

    def remove(self, attachment: Attachment) -> None: ...

    def agent_gone(self) -> None:
        """The agent ended: a replay from it is over."""


class DirectFeed:
    """Implements `Feed` without a journal: what is published is sent at once."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self.attachments: list[Attachment] = []
        self.waiting: Attachment | None = None
        """The attachment that the next replay is for."""
        self.replaying = asyncio.Lock()
        """Held while a replay is under way: all events received meanwhile belong to it."""
        self.delivered = 0
        self.kept_elsewhere = True
        """The next event from the owner is stored in the owner's journal."""
        self.coming: Counter[Attachment] = Counter()
        """How many loads and resumes of each attachment wait for the owner."""
        self.unconfirmed: set[Attachment] = set()
        """Attachments that only loads and resumes under way have made: no one of these was answered well yet."""
        self._early: set[Attachment] = set()
        """Attachments that wait for a replay; events published before it are not sent to them: it contains those."""
        self._held: list[tuple[Attachment, Action]] = []
        """Actions that wait for the end of an attachment's replay, which has the events before them."""
        self._only: Attachment | None = None
        """The attachment that the current replay is sent to; None: all."""
        self._lacked: int | None = None
        """The number of the next event in a replay of which some attachments have a part already."""
        self._over = asyncio.Event()
        self._over.set()
        self._shown: list[Attachment] = []
        """The attachments that events are sent to now."""
        self._journal_sinks: list[JournalAttachment] = []
        self._seq = 0

    def publish(
        self, tag: bytes, line: bytes, author: object | None = None, per_client: bool = False
    ) -> None:
        for attachment in self._shown:
            if attachment.client is not author:
                try:
                    attachment.send(attachment.own_view(line) if per_client else line)
                except Exception:  # a failure at one client must not cost the others the event
                    log.exception("event could not be shown", extra={"session": self._session_id})
        if self._journal_sinks:
            self._journal_sink(tag + line)

    def reaches(self, author: object) -> bool:
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
        self.unconfirmed.discard(attachment)
        self._look()

    # -- replays

    def expect_replay(self, attachment: Attachment, position: int = 0) -> None:
        """Send this attachment nothing until its replay begins; `position`: the last event received live."""
        self._note(attachment, position)
        self._early.add(attachment)
        self._look()

    def came(self, attachment: Attachment) -> None:
        """A load or resume of this attachment has ended."""
        self.coming -= Counter([attachment])

    def forget_replay(self, attachment: Attachment) -> None:
        """The replay for this attachment will not come."""
        self._early.discard(attachment)
        self._look()

    def after_replay(self, attachment: Attachment, action: Action) -> None:
        """Run `action` now, or after the replay that this attachment waits for: that has the events before it."""
        if attachment in self._early:
            self._held.append((attachment, action))
        else:
            self.then(action)

    def _release_held(self) -> None:
        held, self._held = self._held, []
        for attachment, action in held:
            if attachment in self._early or attachment is self._only:
                self._held.append((attachment, action))
            else:
                self.then(action)

    def replay_begins(self, position: int = 0) -> None:
        """The next events are a replay: send them only to the attachment that waits for it; to all if none does.

        `position`: the last event received live.
        """
        self._over.clear()
        self._only = self.waiting
        if self.waiting is not None:
            self._note(self.waiting, position)
            self._early.discard(self.waiting)
        self._look()

    def replayed_until(self, position: int) -> None:
        """The owner's replay has ended with event `position`."""
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
        """Send the next event, number `seq`, only to attachments whose position is before it; None: to all."""
        self._lacked = seq
        self._look()

    def lost(self, position: int, replayed: int) -> None:
        """The connection to the owner is lost: note the last event that each client has.

        `position`: the last event received live; `replayed`: the last event of a replay that was under way.
        """
        self.delivered = max(self.delivered, position)
        for attachment in self.attachments:
            if attachment is not self._only:
                self._note(attachment, position)
            elif replayed and not attachment.reads_journal:
                attachment.position = replayed  # it went back to the replay's beginning

    def _note(self, attachment: Attachment, position: int) -> None:
        """Note the last event that a client has, if it is sent live events and does not read the journal itself."""
        if not attachment.reads_journal and attachment not in self._early:
            attachment.position = max(attachment.position, position)

    def agent_gone(self) -> None:
        self.replay_ended()

    async def wait_replayed(self) -> None:
        """Wait for the end of a replay that has begun."""
        await self._over.wait()

    def _look(self) -> None:
        only, early, lacked = self._only, self._early, self._lacked
        shown = [each for each in self.attachments if each not in early and only in (None, each)]
        if lacked is not None:
            shown = [each for each in shown if each.reads_journal or each.position < lacked]
        self._shown = shown
        self._journal_sinks = [each for each in shown if isinstance(each, JournalAttachment)]
        if self._held:
            self._release_held()

    @property
    def seq(self) -> int:
        """How many events the journal sinks were sent; nothing is stored, so other clients get no numbers."""
        return self._seq

    def _journal_sink(self, event: bytes) -> None:
        self._seq += 1
        for journal_sink in self._journal_sinks:
            journal_sink.show_unkept(self._seq, event, kept_elsewhere=self.kept_elsewhere)
