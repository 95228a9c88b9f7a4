"""Collects what one turn of the event loop publishes in a batch, which `JournalFeed` stores and sends."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from dragoman.gateway.delivery import actions
from dragoman.gateway.delivery.actions import Action
from dragoman.gateway.delivery.batch import Batch

if TYPE_CHECKING:
    from dragoman.gateway.delivery.attachment import Attachment


class BatchCollector:
    def __init__(self, session_id: str) -> None:
        self.attachments: list[Attachment] = []
        self._session_id = session_id
        self._open: Batch | None = None
        self._holding = False
        self._pending: deque[Batch] = deque()
        """Batches not sent to attachments yet: first those that failed, then those in flight, then the rest."""
        self._loop = asyncio.get_running_loop()

    def _flush(self, batch: Batch) -> None:
        """The batch is complete: store it."""
        raise NotImplementedError

    def publish(self, tag: bytes, line: bytes, author: object | None = None, varied: bool = False) -> None:
        batch = self._open or self._begin(waits=author is not None)
        if varied:
            batch.varied = True
        if author is not None:
            batch.add_authored(tag + line, author)
            return
        batch.events.append(tag + line)
        batch.lines.append(line)

    def reaches(self, author: object) -> bool:
        return True

    def record(self, event: bytes) -> None:
        (self._open or self._begin()).events.append(event)

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

    def _begin(self, *, waits: bool = False) -> Batch:
        """Open a batch and schedule its flush; `waits`: one turn of the event loop later, for a batch that begins with
        a client's own event, such as a prompt, so that the agent is sent the prompt before it is stored."""
        batch = self._open = Batch()
        self._loop.call_soon(self._next_turn if waits else self._flush, batch)
        return batch

    def _next_turn(self, batch: Batch) -> None:
        if self._open is batch:
            self._loop.call_soon(self._flush, batch)

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

    def _run(self, batch: Batch) -> None:
        for action in batch.actions:
            actions.run(action, self._session_id)
