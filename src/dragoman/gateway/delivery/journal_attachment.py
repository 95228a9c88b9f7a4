"""The attachment of a client that takes the journal itself: each event by its number, once, rising by one.

Position, falling behind and catching up are those of every attachment; only what is handed over differs. Terminals
stay references: whoever reads a journal finds their output in it.

There is one reader at a time. Of a session that another process has, it reads the journal that the other process
writes, as often as there is a sign of more; when this process takes the session over, the same reader goes on to the
end of it, where the attachment becomes live.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman.gateway.delivery import events
from dragoman.gateway.delivery.attachment import CATCH_UP_BYTES, Attachment
from dragoman.gateway.ownership import takeover
from dragoman.gateway.ports.store import Row, StoreError
from dragoman.rpc.link import JournalLink

if TYPE_CHECKING:
    from dragoman.gateway.client import ClientConnection
    from dragoman.gateway.delivery.batch import Batch
    from dragoman.gateway.delivery.journal_feed import JournalFeed
    from dragoman.gateway.session.session import Session


log = logging.getLogger(__name__)

LOOK_INTERVAL = 0.5
"""Seconds after which records of another process are seen that came without an update."""
TAKEOVER_INTERVAL = 30.0
"""Seconds between tries to take over a session whose process lives and cannot be reached; shorter at first."""


class JournalAttachment(Attachment):
    reads_journal = True

    def __init__(self, client: ClientConnection, session: Session, link: JournalLink) -> None:
        super().__init__(client, session)
        self._journal_sink = link.journal_sink(session.id)
        self.send = _ignore
        self._more = False
        """There was a sign of more events since the reader asked for the last ones."""
        self._timer: asyncio.TimerHandle | None = None
        self._takeover: asyncio.Task[Session] | None = None
        self._takeover_wait = LOOK_INTERVAL
        self._takeover_at = 0.0

    def show_passing(self, line: bytes) -> None:
        """The journal has the same in its own words."""

    def show_unkept(self, seq: int, event: bytes, *, kept_elsewhere: bool) -> None:
        """An event of a session without a journal here; where another process keeps it, it is in the store by now."""
        if self.session.remote and kept_elsewhere:
            self.catch_up()
            return
        if (
            self.session.gateway.journaling
        ):  # its numbers are those of a journal that does not have this event
            self._journal_sink.unkept(_now(), [event])
            return
        self._journal_sink.events(seq, _now(), [event])
        self.position = seq

    # -- of a session that another process has

    @property
    def _follows(self) -> bool:
        """Another process writes the journal."""
        return self.session.remote and self.session.journal is None

    def follow(self, position: int) -> None:
        """Read the journal that the other process writes; what it says is only taken as a sign that there is more."""
        self.position = position
        self._returned = True
        self.fall_behind()
        self._look()

    def go_on(self, position: int) -> None:
        """It knows by itself how far it is; its reader goes on in the journal that is ours now."""
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
        """Records come without a sign, and the other process may die."""
        session = self.session
        if self._gone:
            return
        if session.orphaned and not session.gateway.closing:
            self._try_takeover()
        else:
            self._takeover_wait, self._takeover_at = LOOK_INTERVAL, 0.0
        self.catch_up()
        if session.remote:
            self._timer = asyncio.get_running_loop().call_later(LOOK_INTERVAL, self._look)

    def _try_takeover(self) -> None:
        """One try at a time, and fewer while the other process lives and does not answer."""
        now = time.monotonic()
        if now < self._takeover_at or (self._takeover is not None and not self._takeover.done()):
            return
        self._takeover = self.session.gateway.spawn(takeover.take_over(self.session, self.client))
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

    def _push_all(self, batch: Batch) -> None:
        self._hand_over(batch.first_seq, _now(), batch.events)

    def _hand_over(self, first_seq: int, ts: int, events: list[bytes]) -> None:
        """Without those that the client has: none comes twice."""
        known = self.position + 1 - first_seq
        if known > 0:
            first_seq, events = first_seq + known, events[known:]
        if events:
            self._journal_sink.events(first_seq, ts, events)
            self.position = first_seq + len(events) - 1


def attachment_for(client: ClientConnection, session: Session) -> Attachment:
    link = client.peer.link
    return (
        JournalAttachment(client, session, link)
        if isinstance(link, JournalLink)
        else Attachment(client, session)
    )


def reads_journal(client: ClientConnection) -> bool:
    return isinstance(client.peer.link, JournalLink)


def _now() -> int:
    return time.time_ns() // 1_000_000


def _ignore(line: bytes) -> None:
    """Updates come as events of the journal."""
