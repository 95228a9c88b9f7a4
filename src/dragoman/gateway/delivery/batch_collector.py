"""The batches of a journal's feed that are not stored and sent yet: held back, completed, sent unstored or dropped."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from dragoman.gateway.delivery import actions
from dragoman.gateway.delivery.actions import Action
from dragoman.gateway.delivery.batch import Batch, Missing
from dragoman.wire import timestamps

if TYPE_CHECKING:
    from dragoman.gateway.delivery.attachment import Attachment


class BatchCollector:
    def __init__(self, session_id: str, last_seq: int, missing: Missing | None) -> None:
        self.attachments: list[Attachment] = []
        self.delivered = last_seq
        self.missing = missing
        """Events that were sent to clients since the last stored event, but are not stored."""
        self._session_id = session_id
        self._open: Batch | None = None
        self._published = 0
        self._holding = False
        self._pending: deque[Batch] = deque()
        """Batches not sent to attachments yet: first those that failed, then those in flight, then the rest."""
        self._loop = asyncio.get_running_loop()

    def _flush(self, batch: Batch) -> None:
        """The batch is complete: store it."""
        raise NotImplementedError

    def _show(self, batch: Batch) -> None:
        """Send the batch to the attachments."""
        raise NotImplementedError

    @property
    def published(self) -> int:
        """How many events were published through this feed, stored or not."""
        return self._published + (len(self._open.events) if self._open is not None else 0)

    def reaches(self, author: object) -> bool:
        return True

    def add(self, attachment: Attachment) -> None:
        self.attachments.append(attachment)

    def remove(self, attachment: Attachment) -> None:
        self.attachments = [each for each in self.attachments if each is not attachment]

    def agent_gone(self) -> None:
        """Do nothing: replays come from the journal, not from the agent."""

    def then(self, action: Action) -> None:
        if self._open is not None:
            self._open.actions.append(action)
            self._flush(self._open)
        elif self._pending:
            self._pending[-1].actions.append(action)
        else:
            actions.run(action, self._session_id)

    def hold(self) -> None:
        """Collect what is published from now on in one batch, which is neither stored nor sent before `let_go`."""
        if self._open is not None:
            self._flush(self._open)
        self._holding = True

    def let_go(self) -> None:
        self._holding = False
        if self._open is not None:
            self._flush(self._open)

    def drop_held(self) -> None:
        """Discard the held batch without storing or sending its events; its actions still run."""
        if self._holding:
            self._holding = False
            batch, self._open = self._open, None
            if batch is not None:
                self._run(batch)

    @property
    def held_bytes(self) -> int:
        return sum(map(len, self._open.events)) if self._holding and self._open is not None else 0

    def _drop_pending(self) -> None:
        """Discard all waiting batches without sending them to any client; their actions still run."""
        while self._pending:
            self._run(self._pending.popleft())

    def _hand_over_unkept(self, most: int = -1) -> None:
        """Send waiting batches without numbers: all of them, or the first `most`."""
        while self._pending and most:
            most -= 1
            batch = self._pending.popleft()
            if batch.gap:
                self._run(batch)
                continue
            batch.kept, batch.after = False, self.delivered
            before = self.missing or Missing(0, timestamps.now())
            self.missing = Missing(before.events + len(batch.events), before.since)
            self._show(batch)

    def _run(self, batch: Batch) -> None:
        for action in batch.actions:
            actions.run(action, self._session_id)
