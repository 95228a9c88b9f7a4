"""The attachment of a client that takes the journal itself: every event by its number, none left out.

Position, falling behind and catching up are those of every attachment; only what is handed over differs. Terminals
stay references: whoever reads a journal finds their output in it.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from dragoman.gateway.attachment import Attachment
from dragoman.gateway.ports.store import Row
from dragoman.rpc.link import JournalLink

if TYPE_CHECKING:
    from dragoman.gateway.client import ClientConnection
    from dragoman.gateway.feed import Batch, JournalFeed
    from dragoman.gateway.session import Session


class TappedAttachment(Attachment):
    tapped = True

    def __init__(self, client: ClientConnection, session: Session, link: JournalLink) -> None:
        super().__init__(client, session)
        self._tap = link.tap(session.id)
        self.send = _ignore

    def show_unkept(self, seq: int, event: bytes) -> None:
        """An event of a session without a journal."""
        self._tap.events(seq, _now(), [event])
        self.position = seq

    def _push_all(self, batch: Batch) -> None:
        known = max(self.position + 1 - batch.first_seq, 0)
        events = batch.events[known:] if known else batch.events
        if events:
            self._tap.events(batch.first_seq + known, _now(), events)
        self.position = max(self.position, batch.last_seq)

    async def _show_row(self, feed: JournalFeed, row: Row) -> None:
        self._tap.events(row.first_seq, row.ts, row.events())
        self.position = max(self.position, row.last_seq)
        self._run_due(self.position)
        await asyncio.sleep(0)  # a long replay must not keep other sessions waiting


def attachment_for(client: ClientConnection, session: Session) -> Attachment:
    link = client.peer.link
    return (
        TappedAttachment(client, session, link)
        if isinstance(link, JournalLink)
        else Attachment(client, session)
    )


def _now() -> int:
    return time.time_ns() // 1_000_000


def _ignore(line: bytes) -> None:
    """Updates come as events of the journal."""
