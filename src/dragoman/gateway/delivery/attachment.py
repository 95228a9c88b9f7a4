"""An attachment: one client's live view of one session, with the client's position in the journal.

    live       stored events are sent at once
    behind     the client reads slowly, or came late: events are read from the journal at its pace

An attachment that is behind reads until nothing is left and becomes live in the same turn of the loop, so that no event
is left out or sent twice. Answers and questions for a client that is behind wait for their place in the order.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from dragoman.gateway.delivery import actions, events, replay
from dragoman.gateway.delivery.conversation.undone import NOTHING, Undone
from dragoman.gateway.ports.store import Row, StoreError
from dragoman.gateway.rewriting.quirks import Corrections
from dragoman.gateway.rewriting.updates import update_line
from dragoman.gateway.session.settings import options
from dragoman.gateway.session.terminals.terminal_mirror import TerminalMirror
from dragoman.rpc.link import BulkLink, SplitLink
from dragoman.wire import limits

if TYPE_CHECKING:
    from dragoman.gateway.access.client import Client
    from dragoman.gateway.agent import AgentConnection
    from dragoman.gateway.delivery.batch import Batch
    from dragoman.gateway.delivery.journal_feed import JournalFeed
    from dragoman.gateway.runtime import Runtime

log = logging.getLogger(__name__)

CATCH_UP_BYTES = 256 * 1024
"""How much is read from the journal at once: enough for one write, and little to buffer for a slow client."""
OPTION_KIND = b'"%b"' % options.UPDATE.encode()
FIRST_BYTES = 8 * 1024
FIRST_EVENTS = 32
"""Sent before the rest of a replay is prepared, so that the client shows the beginning at once."""


def missing(first_seq: int, last_seq: int, *, damaged: bool = False) -> str:
    """The notice to a client that asks for events that retention removed, or that are damaged on the disk."""
    why = "damaged in the journal and left out" if damaged else "not kept any more (sessions.retain_bytes)"
    if first_seq == last_seq:
        return f"Event {first_seq} of this conversation is {why}."
    return f"Events {first_seq} to {last_seq} of this conversation are {why}."


class Viewed(Protocol):
    """A session as its attachments see it."""

    id: str
    cwd: str

    @property
    def gateway(self) -> Runtime: ...

    @property
    def agent(self) -> AgentConnection | None: ...

    @property
    def journal(self) -> JournalFeed | None: ...

    @property
    def attachments(self) -> list[Attachment]: ...

    @property
    def turn(self) -> object: ...

    @property
    def owned_elsewhere(self) -> bool: ...

    @property
    def orphaned(self) -> bool: ...

    def foreign_terminals(self, client: Client) -> replay.ForeignTerminals: ...

    def notice_line(self, client: Client, title: str, severity: str) -> bytes: ...

    def take_over(self, client: Client) -> Coroutine[Any, Any, None]: ...


class Attachment:
    reads_journal = False
    """Whether the client is sent the journal's events instead of updates."""

    def __init__(self, client: Client, session: Viewed) -> None:
        self.client = client
        self.session = session
        link = client.peer.link
        self._outlet = link.outlet(session.id) if isinstance(link, SplitLink) else None
        self.send: Callable[[bytes], None] = link.send if self._outlet is None else self._outlet.send
        self._send_all: Callable[[list[bytes]], None] = (
            link.send_all if self._outlet is None and isinstance(link, BulkLink) else self._send_each
        )
        if self._outlet is not None:
            self._outlet.on_room = self.catch_up
        self.live = True
        self.position = 0
        """The last event that this client has."""
        self._plain = not client.capabilities.seq
        self._shared = client.capabilities.replays
        self._turn_ends = client.capabilities.turn_ends
        self._hides_booleans = not client.capabilities.boolean_options
        self._bulk = self._plain and self._outlet is None  # the stored lines themselves, without numbers
        self._due: deque[tuple[int, Callable[[], None]]] = deque()
        self._first = -1  # events left until the loop gets a turn to send the first ones
        self._history_until = 0  # up to this event only updates of the conversation are sent
        self._terminals: dict[str, str] = {}
        self._undone = NOTHING
        self._corrections = Corrections()
        self.mirror = TerminalMirror(self) if client.shows_terminals else None
        """The client's terminals that show commands which the agent runs by itself."""
        self._task: asyncio.Task[None] | None = None
        self._gone = False
        self._damage_told = False
        self._returned = False
        """The client has just returned with a position, and the next event may have been removed."""

    # -- live

    def push(self, batch: Batch) -> None:
        """Send a batch; a client that is behind reads a stored one from the journal, another waits in its queue."""
        if not batch.kept:
            self.after(batch.after, partial(self._push_unkept, batch))
            return
        if not self.live:
            return
        if not self._has_room:
            self.live = False
            return
        self._push_all(batch)

    def _push_all(self, batch: Batch) -> None:
        if batch.first_seq <= self.position or not self._may_send_lines(batch):
            self._push_each(batch)
            self.position = max(self.position, batch.last_seq)
            return
        self.position = batch.last_seq
        if batch.lines:
            self._send_all(batch.lines)

    def _may_send_lines(self, batch: Batch) -> bool:
        """Whether this client is sent `batch.lines` as they are.

        Not if its updates carry numbers, if clients get different lines, or if it lacks events of another author.
        """
        if not self._bulk or batch.per_client or batch.gap:
            return False
        return not batch.authors or (batch.author is self.client and not self._shared)

    def _send_each(self, lines: list[bytes]) -> None:
        for line in lines:
            self.send(line)

    def _push_unkept(self, batch: Batch) -> None:
        """Send a batch that is not stored, without numbers: it cannot be replayed."""
        for index, event in enumerate(batch.events):
            if event[0] in events.SHOWN:
                self._show(None, self.own_view(event[1:]), batch.authors.get(index))

    def _push_each(self, batch: Batch) -> None:
        for index, event in enumerate(batch.events):
            seq = batch.first_seq + index
            if seq > self.position and event[0] in events.SHOWN:
                self._show(seq, self.own_view(event[1:]), batch.authors.get(index))
            elif batch.gap:
                self._show_gap(seq, event)

    def show_passing(self, line: bytes) -> None:
        """Send an update that is in no journal; a client that is behind does not get it."""
        if self.live and self._has_room and not self._shared:
            self._show(None, line, None)

    def own_view(self, line: bytes) -> bytes:
        """The line as this client is sent it: other clients' terminals as text, without unknown types of options."""
        if self._hides_booleans and OPTION_KIND in line:
            line = replay.without_booleans(line)
        if b'"terminalId"' in line:
            line = replay.without_terminals(line, self.session.foreign_terminals(self.client))
        return line if self.mirror is None else self.mirror.view(line)

    @property
    def is_current(self) -> bool:
        """Whether actions may run at once: the client is live and has no terminals to wait for."""
        return self.live and self.mirror is None

    def after(self, seq: int, action: Callable[[], None]) -> None:
        """Run `action` when this client has everything up to `seq`; an exception in `action` is only logged."""
        if self.live or self._gone:
            actions.run(action, self.session.id)
        else:
            self._due.append((seq, action))

    def after_terminals(self, action: Callable[[], None]) -> None:
        """Run `action` when the terminals that this client was asked for are linked to their tool calls."""
        if self.mirror is None:
            action()
        else:
            self.mirror.after(action)

    def show_alone(self, line: bytes) -> None:
        """Send an update to this client alone, which is not journaled."""
        if not self._gone:
            self._show(None, line, None)

    # -- behind

    def start_at(
        self,
        position: int,
        *,
        history_until: int = 0,
        terminals: dict[str, str] | None = None,
        undone: Undone = NOTHING,
    ) -> None:
        """Read the journal from `position` on; events up to `history_until` are a replay, without what is undone."""
        self.position = position
        self._history_until = history_until
        self._first = FIRST_EVENTS
        self._terminals = terminals or {}
        self._undone = undone
        self._returned = not history_until  # the answer to a load reports a removed beginning
        self.fall_behind()
        self.catch_up()

    def go_on(self, position: int) -> None:
        """Read on after `position`, in a journal that another process wrote until now."""
        self.start_at(position)

    def rewind(self, position: int, missed: list[tuple[int, Callable[[], None]]]) -> None:
        """Go back to the last event that the client has; `missed`: other messages to resend, each after its event."""
        if self._gone:
            return
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self.position = position
        self._returned = True
        self._due.extendleft(reversed(missed))
        self.fall_behind()
        self.catch_up()

    def fall_behind(self) -> None:
        self.live = False

    def catch_up(self) -> None:
        """Read on from the journal; called when the client can be sent more."""
        if not self.live and not self._gone and (self._task is None or self._task.done()):
            self._task = self.session.gateway.spawn(self._catch_up())

    def close(self) -> None:
        """Detach a client that is gone; its waiting actions run, so that nothing waits for them forever."""
        self._gone = True
        self.live = False
        if self._task is not None:
            self._task.cancel()
        self._run_due(None)
        if self.mirror is not None:
            self.mirror.close()
        if self._outlet is not None:
            self._outlet.detached()

    async def _catch_up(self) -> None:
        feed = self.session.journal
        while feed is not None and self._has_room and not self._gone:
            try:
                size = FIRST_BYTES if self._first > 0 else CATCH_UP_BYTES
                delivered = feed.delivered  # before the read: events stored meanwhile are not in the result
                rows = await feed.store.read(self.session.id, self.position, size)
                self._check_start(rows[0].first_seq if rows else delivered + 1)
                for row in rows:
                    await self._show_row(feed, row)
            except StoreError as error:
                log.error("journal cannot be read: %s", error, extra={"session": self.session.id})
                self._say(f"The rest of this conversation's history cannot be shown: {error}")
                self._give_up(feed)
                return
            except Exception:  # a bug of ours must not leave the client waiting for the rest
                log.exception("catching up failed", extra={"session": self.session.id})
                self._give_up(feed)
                return
            if not rows:
                self.position = max(self.position, delivered)
            self._run_due(self.position)
            if self.position >= feed.delivered:
                self.live = True
                self._run_due(None)
                return

    def _check_start(self, first_seq: int) -> None:
        """Report the events missing between the last one that the client has and the first one in the journal."""
        returned, self._returned = self._returned, False
        if returned and first_seq > self.position + 1:
            self._tell_missing(self.position + 1, first_seq - 1)

    def _tell_missing(self, first_seq: int, last_seq: int, *, damaged: bool = False) -> None:
        self._say(missing(first_seq, last_seq, damaged=damaged))

    def _give_up(self, feed: JournalFeed) -> None:
        """Become live without the rest: a logged gap is better than a client that hangs."""
        self.position = feed.delivered
        self.live = True
        self._run_due(None)

    @property
    def _has_room(self) -> bool:
        if self._outlet is not None:
            return self._outlet.writable
        return self.client.writable or self.client.peer.link.backlog <= limits.ATTACHMENT_BACKLOG_BYTES

    async def _show_row(self, feed: JournalFeed, row: Row) -> None:
        if row.damaged:
            log.error("events are damaged", extra={"session": self.session.id, "seq": row.first_seq})
            self._tell_missing(row.first_seq, row.last_seq, damaged=True)
        for seq, event in enumerate(row.events(), row.first_seq):
            if self._due and self._due[0][0] < seq:
                self._run_due(seq - 1)
            if self._first == 0:
                await asyncio.sleep(0)
            self._first -= 1
            shown = events.REPLAYED if seq <= self._history_until else events.SHOWN
            if self._undone and seq in self._undone:
                pass
            elif event[:1] and event[0] in shown:
                self._show_again(
                    seq, event[1:], None if seq <= self._history_until else feed.authors.get(seq)
                )
            elif event.startswith(events.UNKEPT):
                self._show_gap(seq, event)
            elif self._turn_ends and seq <= self._history_until and event.startswith(events.TURN_ENDED):
                self._show_turn_end(seq, event)
            if self._due and self._due[0][0] <= seq:
                self._run_due(seq)
        self.position = max(self.position, row.last_seq)

    def _show_again(self, seq: int, line: bytes, author: object | None) -> None:
        if not replay.is_intact(line):
            log.error("damaged event left out", extra={"session": self.session.id, "seq": seq})
            if not self._damage_told:
                self._damage_told = True
                self._say(
                    "The stored history of this conversation is damaged here; what cannot be read is left out."
                )
            return
        past = seq <= self._history_until
        if past and b'"terminalId"' in line:
            line = replay.without_terminals(line, self._terminals)
        if b'"terminal_' in line and not self.client.capabilities.draws_terminals:
            line = replay.with_terminal_text(line, self._corrections)
        if not past:
            line = self.own_view(line)
        self._show(seq, line, author)

    def _say(self, title: str) -> None:
        """Send a notice to this client alone: other clients may have got everything."""
        self.send(self.session.notice_line(self.client, title, "error"))

    def _show_gap(self, seq: int, event: bytes) -> None:
        """Send the notice that some events before this one were not stored."""
        title = events.unkept_notice(events.read_record(event))
        self._show(seq, self.session.notice_line(self.client, title, "error"), None)

    def _show_turn_end(self, seq: int, event: bytes) -> None:
        """Replay the end of a turn: its own update is state, which a replay leaves out."""
        if not replay.is_intact(event[1:]):
            log.error("damaged record left out", extra={"session": self.session.id, "seq": seq})
            return
        facts = {name: value for name, value in events.read_record(event).items() if name != "dragoman"}
        update = {"sessionUpdate": "session_info_update", "_meta": {"dragoman": facts}}
        self._show(seq, update_line(self.session.id, update), None)

    def tell(self, title: str, severity: str) -> None:
        """Send a notice to this client alone, at once, ahead of events that wait."""
        self.send(self.session.notice_line(self.client, title, severity))

    def _show(self, seq: int | None, line: bytes, author: object | None) -> None:
        """Send a line unless this client is its author; another process of Dragoman gets it, marked, for its clients."""
        own = author is self.client
        if own and not self._shared:
            return
        shown = line if self._plain else replay.with_seq(line, seq, own=own)
        if self._outlet is not None and seq is not None:
            self._outlet.send_event(seq, shown)
        else:
            self.send(shown)

    def _run_due(self, seq: int | None) -> None:
        while self._due and (seq is None or self._due[0][0] <= seq):
            actions.run(self._due.popleft()[1], self.session.id)
