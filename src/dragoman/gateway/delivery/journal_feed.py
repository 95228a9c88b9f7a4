"""The feed of a session with a journal: published events are stored, then sent to clients.

A batch holds the events published in one turn of the event loop. It is stored with one append, gets its numbers when it
is sent to the store, and goes to every attachment once it is stored, mostly before the append returns. Appends may
overlap; the store answers in their order, and after a failed append the following ones fail too. When all are answered,
the failed batches are first in `_pending` and are retried, the first alone until it succeeds (states: `journal_state`).
"""

from __future__ import annotations

import asyncio
import logging
import time

from dragoman.gateway.delivery.batch import Batch, Missing, gap_batch
from dragoman.gateway.delivery.batch_collector import BatchCollector
from dragoman.gateway.delivery.journal_state import (
    UNNUMBERED,
    JournalState,
    JournalWatcher,
    check_move,
    is_hopeless,
    is_its_own_fault,
    is_taken,
)
from dragoman.gateway.ports.store import OutcomeUnknown, SequenceGap, Store, StoreError

log = logging.getLogger(__name__)

MAX_AUTHORS = 1000
"""Authors remembered by seq; a client that is further behind may see a prompt of its own again."""
RETRY_SECONDS = 0.1
"""Time between two tries in the state WAITING."""
TELL_SECONDS = 0.5
"""How long events wait before clients are notified: a short delay of the disk is not reported."""
MAX_WAITING_BYTES = 4 * 1024 * 1024
"""Size of the batches in flight to a slow disk above which the agent is paused."""
HEAL_SECONDS = 1.0
"""Time between two tries in the state UNKEPT."""


class JournalFeed(BatchCollector):
    """Implements `Feed`."""

    def __init__(
        self,
        store: Store,
        session_id: str,
        epoch: int,
        last_seq: int,
        watcher: JournalWatcher,
        patience: float,
        missing: Missing | None = None,
    ) -> None:
        """`missing`: events that an earlier feed in this process sent after `last_seq` and could not store."""
        super().__init__(session_id, last_seq, missing)
        self.epoch = epoch
        self.store = store
        self.state = JournalState.STORED
        self.trouble: StoreError | None = None
        """Why events cannot be stored at present."""
        self.authors: dict[int, object] = {}
        """Author by seq, of events published by this process; authors are not sent their own events again."""
        self._next = last_seq + 1
        self._watcher = watcher
        self._patience = patience
        self._in_flight = 0
        self._waiting_bytes = 0
        """Size of the batches in flight."""
        self._stored = 0
        """How many batches at the head of `_pending` are stored but not sent to attachments yet."""
        self._handing_over = False
        self._failed = 0
        self._failures = 0
        """How often all appends were answered and some had failed."""
        self._error: StoreError | None = None
        """The error of the first append that failed."""
        self._waits_since = 0.0
        self._told = False
        """Clients have been notified that events wait."""
        self._unclaimed = False
        self._stopped = False
        self._timer: asyncio.TimerHandle | None = None
        if missing is not None:
            self._append_all()

    @property
    def broken(self) -> bool:
        """Whether events are sent to clients without being stored."""
        return self.state in UNNUMBERED

    @property
    def seq(self) -> int:
        """The number of the last event that was published, if everything can be stored."""
        waiting = 0 if self.broken else sum(len(b.events) for b in self._pending if not b.first_seq)
        return self._next - 1 + waiting + (len(self._open.events) if self._open is not None else 0)

    # -- publishing

    def publish(
        self, tag: bytes, line: bytes, author: object | None = None, per_client: bool = False
    ) -> None:
        batch = self._open or self._begin(waits=author is not None)
        batch.per_client |= per_client
        if author is not None:
            batch.add_authored(tag + line, author)
            return
        batch.events.append(tag + line)
        batch.lines.append(line)

    def record(self, event: bytes) -> None:
        (self._open or self._begin()).events.append(event)

    def _begin(self, *, waits: bool = False) -> Batch:
        """Open a batch and schedule its flush; `waits`: one turn of the event loop later, for a batch that begins with
        a client's own event, such as a prompt, so that the agent is sent the prompt before it is stored."""
        batch = self._open = Batch()
        self._loop.call_soon(self._next_turn if waits else self._flush, batch)
        return batch

    def _next_turn(self, batch: Batch) -> None:
        if self._open is batch:
            self._loop.call_soon(self._flush, batch)

    # -- storing

    def _flush(self, batch: Batch) -> None:
        if self._open is not batch or self._holding:
            return
        self._open = None
        if self._stopped and self.state is JournalState.ENDED and batch.events:
            kind = bytes(batch.events[0][:60])
            log.warning(
                "event of a closed session is not stored: %r", kind, extra={"session": self._session_id}
            )
        self._published += len(batch.events)
        self._pending.append(batch)
        if self.state is JournalState.STORED and not self._failed:
            self._append(batch)
        elif self.state is JournalState.FENCED:
            self._drop_pending()
        elif self.state is JournalState.ENDED or (self.state is JournalState.UNKEPT and not self._in_flight):
            self._hand_over_unkept()

    def _append(self, batch: Batch) -> None:
        batch.first_seq = self._next
        self._next += len(batch.events)
        batch.last_seq = self._next - 1
        for index, author in batch.authors.items():
            self.authors[batch.first_seq + index] = author
            if len(self.authors) > MAX_AUTHORS:
                del self.authors[next(iter(self.authors))]
        self._in_flight += 1
        self.store.append(self._session_id, self.epoch, batch.first_seq, batch.events, self._done)
        if self._in_flight:
            self._waiting_bytes += batch.size
            if self._waiting_bytes > MAX_WAITING_BYTES:
                self._watcher.journal_congested(True)

    def _done(self, error: StoreError | None) -> None:
        """Handle the outcome of one append; called in the order of the appends, maybe before an append returns."""
        self._in_flight -= 1
        if self._waiting_bytes and not self._in_flight:
            self._waiting_bytes = 0
            self._watcher.journal_congested(False)
        if error is None and self.state is JournalState.STORED and not self._failed:
            self._stored += 1
            self._hand_over_stored()
        elif self.state in (JournalState.FENCED, JournalState.ENDED):
            return
        elif error is None or self._is_there(error):
            self._recovered()
        elif is_taken(error):
            self._move(JournalState.FENCED, error)
        else:
            self._failed += 1
            self._error = self._error or error
            if not self._in_flight:
                if self._handing_over:  # stored batches are sent first
                    self._loop.call_soon(self._all_answered)
                else:
                    self._all_answered()

    def _hand_over_stored(self) -> None:
        """Send the stored batches in order; not reentrant, so that events published meanwhile come after them."""
        if self._handing_over:
            return
        self._handing_over = True
        try:
            while self._stored and self._pending:
                self._stored -= 1
                batch = self._pending.popleft()
                self.delivered = batch.last_seq
                if batch.gap:
                    self.missing = None
                self._show(batch)
        finally:
            self._handing_over = False
            self._stored = 0

    def _is_there(self, error: StoreError) -> bool:
        """Whether an append reported as failed is in the journal after all: only this process writes at its epoch."""
        batch = self._pending[self._stored + self._failed]
        return isinstance(error, SequenceGap) and not batch.gap and error.last_seq >= batch.last_seq

    def _recovered(self) -> None:
        """Handle a stored batch after failures: all batches before it are stored too, since numbers have no gaps."""
        self._stored += self._failed + 1
        self._failed, self._error = 0, None
        self._hand_over_stored()
        if self.state is not JournalState.STORED:
            self._move(JournalState.STORED, None)
        else:
            self._append_unnumbered()

    def _all_answered(self) -> None:
        """Decide how to go on when nothing is in flight and the failed batches are first in the queue."""
        error, self._error, self._failed = self._error, None, 0
        if error is None:
            return  # this process ended meanwhile
        self._failures += 1
        self._take_numbers_back(error)
        if self.state is JournalState.UNKEPT:
            self._hand_over_unkept()
            self._try_in(HEAL_SECONDS)
        elif is_its_own_fault(error):
            log.error("events cannot be stored: %s", error, extra={"session": self._session_id})
            self._hand_over_unkept(1)
            self._append_all()
        elif self.state is JournalState.WAITING:
            waited = time.monotonic() - self._waits_since
            over = 0 < self._patience <= waited and not isinstance(error, OutcomeUnknown)
            if over or is_hopeless(error):
                self._move(JournalState.UNKEPT, error)
                return
            if waited >= TELL_SECONDS and not self._told:
                self._told, self.trouble = True, error
                self._watcher.journal_delayed(error)
            self._try_in(RETRY_SECONDS)
        else:
            self._waits_since = time.monotonic()
            self._move(JournalState.UNKEPT if is_hopeless(error) else JournalState.WAITING, error)

    def _take_numbers_back(self, error: StoreError) -> None:
        """Remove the numbers of all batches in the queue: none of them is stored."""
        self._next = self._pending[0].first_seq
        if isinstance(error, SequenceGap):
            self._next = max(self._next, error.last_seq + 1)
        for batch in self._pending:
            for index in batch.authors if batch.first_seq else ():
                self.authors.pop(batch.first_seq + index, None)
            batch.first_seq = 0

    def _move(self, state: JournalState, error: StoreError | None) -> None:
        check_move(self.state, state)
        log.log(
            logging.INFO if error is None else logging.WARNING,
            "journal is %s%s",
            state.value,
            f": {error}" if error is not None else "",
            extra={"session": self._session_id},
        )
        self.state = state
        self.trouble = error if state in UNNUMBERED else None
        self._stop_trying()
        if state is JournalState.STORED:
            if self._told:
                self._told = False
                self._watcher.journal_delayed(None)
            self._append_all()
            if self.state is not state:
                return  # the next write failed again, and the watcher knows
        elif state is JournalState.WAITING:
            self._try_in(RETRY_SECONDS)
        elif state is JournalState.FENCED:
            self._drop_pending()
        else:
            self._hand_over_unkept()
            if state is JournalState.UNKEPT:
                self._try_in(HEAL_SECONDS)
        self._watcher.journal_state_changed(state, error)

    def _append_all(self) -> None:
        """Append all batches not in flight yet, after a record that counts the events that were not stored."""
        if self.missing is not None and not (self._pending and self._pending[0].gap):
            self._pending.appendleft(gap_batch(self.missing))
        self._append_unnumbered()

    def _append_unnumbered(self) -> None:
        """Append batches until one fails at once; the rest then waits, or is sent without a number."""
        failures = self._failures
        while failures == self._failures and not self._failed:
            batch = next((each for each in self._pending if not each.first_seq), None)
            if batch is None:
                return
            self._append(batch)

    # -- trying again

    def begin_unkept(self, error: StoreError, *, for_good: bool) -> None:
        """Start in the state UNKEPT until the journal is claimed; `for_good`: the store is read-only."""
        self.state, self.trouble = JournalState.UNKEPT, error
        self._unclaimed = True
        if not for_good:
            self._try_in(HEAL_SECONDS)

    def claimed(self, epoch: int, last_seq: int) -> None:
        if self.state is not JournalState.UNKEPT:
            return
        self.epoch, self._unclaimed = epoch, False
        self._next = last_seq + 1
        self.delivered = max(self.delivered, last_seq)
        for attachment in self.attachments:
            if attachment.position < last_seq:  # another process wrote the journal meanwhile
                attachment.start_at(attachment.position)
        self._try()

    def not_claimed(self, error: StoreError) -> None:
        if self.state is not JournalState.UNKEPT:
            return
        if is_taken(error):
            self._move(JournalState.FENCED, error)
        else:
            self._try_in(HEAL_SECONDS)

    def lose(self, error: StoreError) -> None:
        """The lease is lost: no later event is stored or sent."""
        if self.state not in (JournalState.FENCED, JournalState.ENDED):
            self._move(JournalState.FENCED, error)

    def stop(self) -> None:
        """The session is unloaded: nothing is published any more; what is published nevertheless is not stored."""
        self._stopped = True
        if self.state is JournalState.UNKEPT:
            self._stop_trying()
        elif self.state is JournalState.STORED and not self._pending and self._open is None:
            self.state = JournalState.ENDED

    def end(self, *, answered: bool) -> None:
        """This process ends: send what is pending without waiting for the store.

        `answered`: the store has just stored something and will store the rest. A client that returns gets those events
        with their numbers; sent now without numbers, the client would get them twice.
        """
        self.drop_held()
        if self.state is not JournalState.FENCED and self.state is not JournalState.ENDED:
            if self._open is not None:
                self._flush(self._open)
            if answered and self.state is JournalState.STORED and not self._failed:
                return
            if self._pending or self.state is JournalState.UNKEPT:
                self._move(JournalState.ENDED, self.trouble or self._error)

    def _try_in(self, seconds: float) -> None:
        if not self._stopped or self.state is JournalState.WAITING:
            self._timer = self._loop.call_later(seconds, self._try)

    def _stop_trying(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _try(self) -> None:
        self._timer = None
        if self._unclaimed:
            self._watcher.claim_journal()
        elif self.state is JournalState.WAITING:
            self._append(self._pending[0])
        elif self.missing is None:  # no event since: the next one shows whether storing works
            self._move(JournalState.STORED, None)
        else:
            self._append_all()

    # -- showing

    def _show(self, batch: Batch) -> None:
        for attachment in self.attachments:
            try:
                attachment.push(batch)
            except Exception:  # a failure at one client must not cost the others their events or answers
                log.exception("events could not be shown", extra={"session": self._session_id})
        if batch.actions:
            self._run(batch)
