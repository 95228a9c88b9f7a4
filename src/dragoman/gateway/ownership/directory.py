"""The directory of sessions, live or not, in the store; without a journal it is in `memory_directory`."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, Unpack

from msgspec import structs

from dragoman.gateway.delivery import events, transcript
from dragoman.gateway.delivery.batch import Missing
from dragoman.gateway.delivery.conversation.undone import FILES, MARK, read_undone
from dragoman.gateway.delivery.journal_feed import JournalFeed
from dragoman.gateway.ids import new_session_id
from dragoman.gateway.json_types import JsonObject
from dragoman.gateway.lifecycle.workspace import workspace_root
from dragoman.gateway.ownership.entries import (
    RUNNING_STATES,
    SessionEntry,
    SessionEntryPage,
    entry_of,
    examine,
    read_info,
)
from dragoman.gateway.ownership.memory_directory import Directory, Wanted
from dragoman.gateway.ports.store import (
    Fenced,
    HeldElsewhere,
    SessionChanges,
    SessionExists,
    SessionRecord,
    Store,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from dragoman.gateway.session import auditing
from dragoman.gateway.session.open_tools import OpenTools
from dragoman.gateway.session.questions.question import unanswered
from dragoman.wire import timestamps

if TYPE_CHECKING:
    from dragoman.gateway.session.session import Session

log = logging.getLogger(__name__)

COPY_BYTES = 1024 * 1024
ADD_ATTEMPTS = 5
TORN = "The last write to this conversation's journal was cut off, by a crash or a loss of power: what it held is lost."
MAX_MISSING = 1000
"""Most unloaded sessions whose journals still lack the record of events that were not stored."""


SessionEntries: TypeAlias = list[SessionEntry]  # within the class below, `list` is a method


class StoreDirectory(Directory):
    """The sessions in the store; opens and repairs their journals."""

    def __init__(self, store: Store, patience: float) -> None:
        """`patience`: seconds that events wait while the store fails."""
        super().__init__()
        self.store = store
        self._patience = patience
        self._unsaved: dict[str, SessionRecord] = {}
        """Live sessions that could not be added to the store yet."""
        self._missing: dict[str, Missing] = {}
        """Events of unloaded sessions that were not stored, and are not recorded as missing in the journal yet."""

    async def create(self, session: Session, original: Session | None, before: int | None = None) -> None:
        time = timestamps.now()
        record = SessionRecord(
            id=session.id,
            agent=session.agent_name,
            agent_session_id=session.agent_session_id or None,
            cwd=session.cwd,
            workspace=session.workspace,
            additional_directories=tuple(session.setup.directories),
            title=session.entry.title,
            created_at=time,
            updated_at=time,
            state="idle",
            forked_from=original.id if original is not None else None,
            extra=session.entry.extra,
            owner=self.store.owner.id,
            epoch=1,
        )
        try:
            await self._add(record)
        except StoreUnavailable as error:
            if not self.store.writable or original is not None:
                raise
            log.error("session is not kept: %s", error, extra={"session": session.id})
            self._unsaved[session.id] = record
            self._open_journal(session, 1, 0).begin_unkept(error, for_good=False)
            return
        journal = self._open_journal(session, 1, 0)
        if original is not None and _is_copied(original, session):
            await self._copy(original, session, before)
            if journal.trouble is not None:
                raise journal.trouble

    async def _add(self, record: SessionRecord) -> None:
        """Add a record; if two processes of one agent issue the same id at once, the later one gets it (G-040)."""
        for left in reversed(range(ADD_ATTEMPTS)):
            await self.free_agent_id(record.agent, record.agent_session_id or "")
            try:
                await self.store.create(record)
                return
            except SessionExists:
                if not left:
                    raise

    async def get(self, session_id: str) -> SessionEntry | None:
        record = await self.store.get(session_id)
        return (await self._entry([record]))[0] if record is not None else None

    async def list(self, **wanted: Unpack[Wanted]) -> SessionEntryPage:
        page = await self.store.list(**wanted)
        return SessionEntryPage(await self._entry(page.records), page.next_cursor)

    async def add_listed(self, agent: str, info: JsonObject) -> None:
        title, updated_at, rest = read_info(info)
        record = await self.store.find(agent, str(info["sessionId"]))
        if record is None:
            cwd = str(info.get("cwd", ""))
            time = updated_at or timestamps.now()
            new = SessionRecord(
                id=new_session_id(),
                agent=agent,
                agent_session_id=str(info["sessionId"]),
                cwd=cwd,
                workspace=workspace_root(cwd) if cwd.startswith("/") else cwd,
                title=title,
                created_at=time,
                updated_at=time,
                state="stored",
                extra={"info": rest} if rest else {},
            )
            try:
                await self.store.create(new)
            except SessionExists:
                pass  # added meanwhile by another process, or by a session being created
        elif (
            not record.last_seq
            and record.owner is None
            and (title, updated_at) != (record.title, record.updated_at)
        ):
            changes = SessionChanges(title=title, updated_at=updated_at or record.updated_at)
            self.store.update(record.id, record.epoch, changes)

    async def own(self, session: Session) -> HeldElsewhere | None:
        if not self.store.writable:
            await self._only_read(session, StoreReadOnly("The store can only be read."), for_good=True)
            return None
        try:
            lease = await self.store.acquire(session.id)
        except (StoreFull, StoreReadOnly) as error:
            log.error("session can only be read: %s", error, extra={"session": session.id})
            await self._only_read(session, error, for_good=False)
            return None
        if isinstance(lease, HeldElsewhere):
            return lease
        self._open_journal(session, lease.epoch, lease.last_seq)
        # Only with the lease held: before, the former owner could still end the turn or change the record.
        record = await self.store.get(session.id)
        if record is not None:
            _know(session, record)
            # The directory may be a second behind the journal; the journal's last page shows a turn begun since.
            if record.state in RUNNING_STATES or await transcript.is_in_turn(self.store, session.id, pages=1):
                await self._repair(session)
        if lease.torn:
            session.notice(TORN, "error")
        return None

    async def _copy(self, original: Session, session: Session, before: int | None) -> None:
        """Copy the original's history into the fork's journal; ids are random, so replacing them is exact.

        A row of lost events becomes one record: the fork has its own numbers, and none for events that it lacks.
        What is undone is left out, and so are records about rewinds, which name numbers and checkpoints of the original.
        """
        former, mine = original.id.encode(), session.id.encode()
        undone = await read_undone(self.store, original.id)
        position, last = 0, before - 1 if before is not None else sys.maxsize
        while position < last and (rows := await self.store.read(original.id, position, COPY_BYTES)):
            for row in rows:
                if row.damaged and row.first_seq <= last:
                    session.feed.record(events.copied_loss(row.count))
                for seq, event in enumerate(row.events(), row.first_seq):
                    if seq <= last and seq not in undone and not event.startswith((MARK, FILES)):
                        session.feed.record(event.replace(former, mine))
                position = row.last_seq
            await session.wait_settled()  # bounds memory to one read; clients attach after the whole copy
        if original.entry.has_terminals:
            session.entry.save_extra(terminals=True)

    async def release(self, session: Session) -> None:
        journal = session.journal
        if journal is None:
            return
        if self._unsaved.pop(session.id, None) is None and journal.missing is not None:
            self._missing[session.id] = journal.missing
            if len(self._missing) > MAX_MISSING:
                del self._missing[next(iter(self._missing))]
        if journal.epoch:
            await self.store.release(session.id, journal.epoch)

    async def delete(self, session_id: str) -> None:
        await self.store.delete(session_id)

    async def free_agent_id(self, agent: str, agent_session_id: str) -> None:
        former = await self.store.find(agent, agent_session_id) if agent_session_id else None
        if former is not None:
            self.store.update(former.id, former.epoch, SessionChanges(agent_session_id=None))

    async def claim_journal(self, session: Session) -> None:
        """Retry what failed when the session was created or taken over."""
        journal = session.journal
        if journal is None:
            return
        try:
            unsaved = self._unsaved.get(session.id)
            if unsaved is not None:
                await self._add(structs.replace(unsaved, agent_session_id=session.agent_session_id or None))
                self._unsaved.pop(session.id, None)  # absent if it was closed meanwhile
                journal.claimed(unsaved.epoch, 0)
                return
            lease = await self.store.acquire(session.id)
            if isinstance(lease, HeldElsewhere):
                raise Fenced(f"Session {session.id} is owned by another process now.")
            if not session.gateway.has(session):  # closed meanwhile
                await self.store.release(session.id, lease.epoch)
                return
        except StoreError as error:
            journal.not_claimed(error)
        else:
            journal.claimed(lease.epoch, lease.last_seq)

    async def _only_read(self, session: Session, trouble: StoreError, *, for_good: bool) -> None:
        """Open a session whose lease cannot be written: its history can be read, new events are not stored."""
        record = await self.store.get(session.id)
        if record is not None:
            _know(session, record)
        journal = self._open_journal(session, 0, await self.store.last_seq(session.id))
        journal.begin_unkept(trouble, for_good=for_good)

    def _open_journal(self, session: Session, epoch: int, last_seq: int) -> JournalFeed:
        missing = self._missing.pop(session.id, None) if epoch else None
        feed = JournalFeed(self.store, session.id, epoch, last_seq, session, self._patience, missing)
        session.deliver_through(feed)
        if session.owned_elsewhere:  # the former owner may have stored more than it sent
            for attachment in feed.attachments:
                attachment.go_on(min(attachment.position, last_seq))
        return feed

    async def _repair(self, session: Session) -> None:
        """Close the last turn, which has no end in the journal, with its open tool calls and questions."""
        tools = OpenTools()
        async for update in transcript.updates(self.store, session.id):
            if update.get("sessionUpdate") in ("tool_call", "tool_call_update"):
                tools.see(update)
        for closing in tools.fail_all(partial(auditing.tool_interrupted, session)):
            session.publish(closing)
        async for question in unanswered(self.store, session.id):
            session.record(**question, by="restart")
        error = {"message": events.INTERRUPTED, "data": {"reason": "restart"}}
        session.record("turn_ended", error=error)
        meta = {"dragoman": {"state": "interrupted", "reason": "restart"}}
        session.publish({"sessionUpdate": "session_info_update", "_meta": meta})
        session.entry.save(SessionChanges(state="idle"))
        await session.wait_settled()  # the repair is part of the history that a load replays

    async def _entry(self, records: Sequence[SessionRecord]) -> SessionEntries:
        examined, holders = await examine(self.store, records)
        return [entry_of(record, holders.get(record.id), self.store.owner) for record in examined]


def _is_copied(original: Session, fork: Session) -> bool:
    """Whether the fork's journal begins with the original's: if it is here, or the fork has nothing from its owner."""
    return original.journal is not None or (original.owned_elsewhere and not fork.agent_session_id)


def _know(session: Session, record: SessionRecord) -> None:
    """Update a session from its record, which the former owner may have changed."""
    session.binding.know(record.agent_session_id or "")
    session.entry.know(record.title, record.extra, pruned=record.first_seq > 1)
