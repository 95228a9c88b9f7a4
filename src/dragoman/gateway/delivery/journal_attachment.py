"""The attachment of a client that reads the journal itself: each event once, in the order of the numbers, without gaps.

Position, falling behind and catching up work as in every attachment; only what is sent differs. Terminals stay
references: their output is in the journal.

There is one reader at a time. Of a session that another process owns, it reads the journal that the owner writes,
whenever there is a sign of new events; when this process takes the session over, the same reader reads on to the end,
where the attachment becomes live.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman.gateway.delivery import events
from dragoman.gateway.delivery.attachment import CATCH_UP_BYTES, Attachment, Viewed
from dragoman.gateway.ports.store import Row, StoreError
from dragoman.rpc.link import JournalLink

if TYPE_CHECKING:
    from dragoman.gateway.access.client import Client
    from dragoman.gateway.delivery.batch import Batch
    from dragoman.gateway.delivery.journal_feed import JournalFeed


log = logging.getLogger(__name__)

LOOK_INTERVAL = 0.5
"""Seconds between looks into the owner's journal for records that came without an update."""
TAKEOVER_INTERVAL = 30.0
"""Most seconds between tries to take over a session whose owner lives but cannot be reached; shorter at first."""


class JournalAttachment(Attachment):
    reads_journal = True

    def __init__(self, client: Client, session: Viewed, link: JournalLink) -> None:
        super().__init__(client, session)
        self._journal_sink = link.journal_sink(session.id)
        self.send = _ignore
        self._more = False
        """There may be new events since the reader's last read."""
        self._timer: asyncio.TimerHandle | None = None
        self._takeover: asyncio.Task[None] | None = None
        self._takeover_wait = LOOK_INTERVAL
        self._takeover_at = 0.0

    def show_passing(self, line: bytes) -> None:
        """Do nothing: the journal has its own record of the same."""

    def show_unkept(self, seq: int, event: bytes, *, kept_elsewhere: bool) -> None:
        """Deliver an event that this process does not store; `kept_elsewhere`: the owner has stored it already."""
        if self.session.owned_elsewhere and kept_elsewhere:
            self.catch_up()
            return
        if (
            self.session.gateway.journaling
        ):  # the client's numbers are those of a journal that does not have this event
            self._journal_sink.unkept(_now(), [event])
            return
        self._journal_sink.events(seq, _now(), [event])
        self.position = seq

    # -- of a session that another process owns

    @property
    def _follows(self) -> bool:
        """Whether another process writes the journal."""
        return self.session.owned_elsewhere and self.session.journal is None

    def follow(self, position: int) -> None:
        """Read the journal that the owner writes; an event from the owner is only a sign that there are new ones."""
        self.position = position
        self._returned = True
        self.fall_behind()
        self._look()

    def go_on(self, position: int) -> None:
        """Read on after a takeover; `position` is not needed, since the reader has its own."""
        self.catch_up()

    def after(self, seq: int, action: Callable[[], None]) -> None:
        super().after(seq, action)
        if self._follows:
            self.catch_up()

    def catch_up(self) -> None:
        self._more = True
        super().catch_up()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().close()

    def _look(self) -> None:
        """Look for new events and for a dead owner: neither records nor the owner's death are signalled."""
        session = self.session
        if self._gone:
            return
        if session.orphaned and not session.gateway.closing:
            self._try_takeover()
        else:
            self._takeover_wait, self._takeover_at = LOOK_INTERVAL, 0.0
        self.catch_up()
        if session.owned_elsewhere:
            self._timer = asyncio.get_running_loop().call_later(LOOK_INTERVAL, self._look)

    def _try_takeover(self) -> None:
        """Start a takeover unless one is under way; the interval doubles while the owner lives but does not answer."""
        now = time.monotonic()
        if now < self._takeover_at or (self._takeover is not None and not self._takeover.done()):
            return
        self._takeover = self.session.gateway.spawn(self.session.take_over(self.client))
        self._takeover_at = now + self._takeover_wait
        self._takeover_wait = min(2 * self._takeover_wait, TAKEOVER_INTERVAL)

    # -- reading

    async def _catch_up(self) -> None:
        store = self.session.gateway.store
        while store is not None and self._follows:
            if not self._more or not self._has_room or self._gone:
                return
            self._more = False
            try:
                rows = await store.read(self.session.id, self.position, CATCH_UP_BYTES)
            except StoreError as error:
                log.error("journal cannot be read: %s", error, extra={"session": self.session.id})
                return
            if rows:
                self._check_start(rows[0].first_seq)
            for row in rows:
                await self._show_row(None, row)
            self._run_due(self.position)
            self._more = self._more or bool(rows)
        await super()._catch_up()

    def _push_unkept(self, batch: Batch) -> None:
        self._journal_sink.unkept(_now(), batch.events)

    def tell(self, title: str, severity: str) -> None:
        self._journal_sink.unkept(_now(), [events.record("notice", title=title, severity=severity)])

    def _tell_missing(self, first_seq: int, last_seq: int, *, damaged: bool = False) -> None:
        self._journal_sink.missing(first_seq, last_seq, damaged)

    async def _show_row(self, feed: JournalFeed | None, row: Row) -> None:
        if row.damaged:
            self._tell_missing(max(row.first_seq, self.position + 1), row.last_seq, damaged=True)
            self.position = max(self.position, row.last_seq)
        self._hand_over(row.first_seq, row.ts, row.events())
        self._run_due(self.position)
        await asyncio.sleep(0)  # a long replay must not keep other sessions waiting

    def push(self, batch: Batch) -> None:
        if batch.kept and self.live and self.client.writable:
            self._push_all(batch)
        else:
            super().push(batch)

    def _push_all(self, batch: Batch) -> None:
        self._hand_over(batch.first_seq, _now(), batch.events)

    def _hand_over(self, first_seq: int, ts: int, events: list[bytes]) -> None:
        """Send the events that the client does not have yet."""
        known = self.position + 1 - first_seq
        if known > 0:
            first_seq, events = first_seq + known, events[known:]
        if events:
            self._journal_sink.events(first_seq, ts, events)
            self.position = first_seq + len(events) - 1


def attachment_for(client: Client, session: Viewed) -> Attachment:
    link = client.peer.link
    return (
        JournalAttachment(client, session, link)
        if isinstance(link, JournalLink)
        else Attachment(client, session)
    )


def reads_journal(client: Client) -> bool:
    return isinstance(client.peer.link, JournalLink)


def _now() -> int:
    return time.time_ns() // 1_000_000


def _ignore(line: bytes) -> None:
    """Drop a line: the client gets updates as journal events."""
