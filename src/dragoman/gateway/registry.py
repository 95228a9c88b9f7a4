"""The live sessions of the gateway: how they are added, closed and unloaded, and how watchers are notified."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Protocol
from weakref import WeakValueDictionary

from msgspec import Raw

from dragoman.config.model import Config
from dragoman.gateway.access.client import Client
from dragoman.gateway.access.identity import Identity
from dragoman.gateway.access.quotas import Places
from dragoman.gateway.delivery.journal_state import JournalState
from dragoman.gateway.json_types import encode
from dragoman.gateway.lifecycle.closing import CLOSED, Closing
from dragoman.gateway.lifecycle.parking import Parking
from dragoman.gateway.ownership.directory import StoreDirectory
from dragoman.gateway.ownership.memory_directory import Directory
from dragoman.gateway.pool import Pool
from dragoman.gateway.ports.checkpoints import CheckpointError
from dragoman.gateway.ports.store import SessionChanges, StoreError
from dragoman.gateway.runtime import Outside
from dragoman.gateway.session.prompts.queue import CANCELLED, Waiting, not_queued
from dragoman.gateway.session.session import Session, SessionHost
from dragoman.gateway.session.states import IllegalTransition
from dragoman.gateway.session.stream import settle
from dragoman.wire.errors import internal

log = logging.getLogger(__name__)

SETTLE_TIMEOUT = 2.0
"""Seconds to wait at shutdown, or when a session is closed, until the last events are stored."""
FINISH_TIMEOUT = 10.0
"""Seconds to wait at shutdown for work in the background."""
CLOSE_TIMEOUT = 5.0
"""Seconds an agent has to answer `session/close` before it is ended anyway (G-057)."""
BROKEN = (
    "This session ended because of an error in Dragoman; its log says which. Load the session again to go on."
)


class SessionWatcher(Protocol):
    """Is notified of changes of sessions; called in the middle of other work, so it must only note them."""

    def session_changed(self, session: Session) -> None: ...

    def session_stopping(self, session: Session) -> None:
        """A client asked for a cancel, whether a turn runs or not."""

    def session_deleted(self, session_id: str) -> None: ...

    def waiting(self, session_id: str) -> list[Waiting]:
        """Messages that the watcher sends after the running turn."""

    def change_waiting(self, session_id: str, id: str, prompt: Raw | None, editor: Identity) -> None:
        """Edit such a message, or drop it if there is no prompt; raises `RpcError` if it does not wait any more."""


class Registry(SessionHost):
    def __init__(self, config: Config, outside: Outside) -> None:
        super().__init__(config, outside)
        self.pool = Pool(self)
        self.parking = Parking(self)
        self.sessions: dict[str, Session] = {}
        self.places = Places(self)
        self.directory = Directory()
        self.clients: set[Client] = set()
        self.watchers: list[SessionWatcher] = []
        self.closings = Closing()
        self._taking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._someone_left = asyncio.Event()
        self.housekeeping: list[asyncio.Task[None]] = []
        if self.store is not None:
            self.directory = StoreDirectory(self.store, self.config.sessions.write_patience)
            self.store.on_lost = self._lease_lost

    def changed(self, session: Session) -> None:
        """Notify the watchers of a change that a list of sessions shows; never called per message."""
        for watcher in self.watchers:
            watcher.session_changed(session)

    def stopping(self, session: Session) -> None:
        """Notify the watchers before a turn is cancelled, so that they hold queued prompts back."""
        for watcher in self.watchers:
            watcher.session_stopping(session)

    def waiting_beside(self, session_id: str) -> list[Waiting]:
        return [message for watcher in self.watchers for message in watcher.waiting(session_id)]

    def change_beside(self, session_id: str, id: str, prompt: Raw | None, editor: Identity) -> None:
        for watcher in self.watchers:
            if any(message.id == id for message in watcher.waiting(session_id)):
                watcher.change_waiting(session_id, id, prompt, editor)
                return
        raise not_queued()

    def deleted(self, session_id: str) -> None:
        for watcher in self.watchers:
            watcher.session_deleted(session_id)
        self.spawn(self._delete_checkpoints(session_id))

    async def _delete_checkpoints(self, session_id: str) -> None:
        try:
            await self.checkpoints.delete(session_id)
        except CheckpointError as error:
            log.warning("checkpoints of a deleted session stay: %s", error, extra={"session": session_id})

    def add(self, session: Session) -> None:
        self.sessions[session.id] = session
        self.changed(session)

    async def keep(self, session: Session, original: Session | None) -> None:
        """Create the journal of a new session; if that fails, the session goes on without, and clients get a notice."""
        try:
            await self.directory.create(session, original)
        except StoreError as error:
            log.error("session is not kept: %s", error, extra={"session": session.id})
            self.spawn(self._say_unkept(session, self.trouble or str(error)))
            return
        trouble = self.trouble or (session.journal.trouble if session.journal is not None else None)
        if trouble is not None:
            self.spawn(self._say_unkept(session, str(trouble)))

    def taking(self, session_id: str) -> asyncio.Lock:
        """The lock held while this process becomes the owner of a session, starts to follow it, or releases it."""
        lock = self._taking.get(session_id)
        if lock is None:
            lock = self._taking[session_id] = asyncio.Lock()
        return lock

    def attached(self, session: Session) -> None:
        self.parking.forget(session) if session.turn is not None else self.parking.idle(session)

    def idle(self, session: Session) -> None:
        self.parking.idle(session)
        if session.owned_elsewhere:
            self.detached(session)

    async def close_session(self, session: Session) -> None:
        """End a session and, with its last one, the agent process (G-057)."""
        if session.closed:
            await self.closings.wait_released(session.id)
            return
        agent = session.agent
        session.questions.cancel_all("close")
        session.close()
        if agent is not None:
            session.binding.lose()
        session.feed.agent_gone()
        session.services.release_terminals()
        await self._drop(session, SessionChanges(state="closed"))
        if agent is not None:
            self.pool.reap(agent)

    async def end_session(self, session: Session) -> None:
        """Cancel the turn, send `session/close` to the agent, and close the session."""
        with self.closings.ending(session.id):
            await self._end_at_agent(session)
            session.questions.cancel_all("close")
            await self.close_session(session)

    async def _end_at_agent(self, session: Session) -> None:
        turn = session.turn
        if turn is not None:
            session.cancel()
        agent = session.agent
        if agent is not None and agent.alive and agent.capabilities.session("close"):
            params = encode({"sessionId": session.agent_session_id})
            try:
                await asyncio.wait_for(agent.call("session/close", params), CLOSE_TIMEOUT)
            except TimeoutError:
                pass  # the agent session ends with its process
        if turn is not None and not turn.settled:
            turn.settle(CANCELLED)

    async def unload(self, session: Session) -> None:
        """Drop a session from memory; the next load makes it live again."""
        if session.closed:
            await self.closings.wait_released(session.id)
        else:
            session.close()
            await self._drop(session)

    async def _drop(self, session: Session, changes: SessionChanges | None = None) -> None:
        """Take a closed session out of memory and release it, even if the caller is cancelled."""
        self.parking.forget(session)
        if self.sessions.get(session.id) is session:
            del self.sessions[session.id]
        self.changed(session)
        session.silence.stop()
        self.closings.releases[session.id] = self.spawn(self._release(session, changes))
        await self.closings.wait_released(session.id)

    async def _release(self, session: Session, changes: SessionChanges | None) -> None:
        """Store and send the last events, detach the clients, release the lease."""
        with self.closings.ending(session.id):
            async with self.taking(session.id):
                await session.services.close()  # which may record the last output of terminals
                settled = await settle([session], SETTLE_TIMEOUT)
                if session.journal is not None and not settled:
                    session.journal.end(answered=False)
                if changes is not None:
                    session.entry.save(changes)
                for attachment in list(session.attachments):
                    if changes is not None and attachment.client.terms.local_process:
                        attachment.client.peer.notify(CLOSED, encode({"sessionId": session.id}))
                    session.detach(attachment.client)
                if session.journal is not None:
                    session.journal.stop()
                try:
                    await self.directory.release(session)
                except StoreError as error:
                    log.warning("lease was not given back: %s", error, extra={"session": session.id})
                del self.closings.releases[session.id]

    def detached(self, session: Session) -> None:
        """A client detached: unload a parked session, or stop following one, when no client is attached."""
        if (session.parked or session.owned_elsewhere) and not session.attachments:
            self.spawn(self._unload_unless_used(session))

    def has(self, session: Session) -> bool:
        """Whether this object is the live session of its id; after a close and a load another object may be."""
        return self.sessions.get(session.id) is session

    async def _unload_unless_used(self, session: Session) -> None:
        if session.attachments or session.attaching or session.turn or session.recovery.restarting:
            return
        if self.sessions.get(session.id) is not session:
            return
        if session.owned_elsewhere:  # the owner may wait until the last client has left
            await self.close_session(session)
        elif session.parked:
            await self.unload(session)

    async def wait_unwatched(self) -> None:
        """Wait until no client is attached to any session."""
        while any(session.attachments for session in self.sessions.values()):
            self._someone_left.clear()
            await self._someone_left.wait()

    def client_left(self, client: Client) -> None:
        self.clients.discard(client)
        self._someone_left.set()

    # -- journal

    def journal_state_changed(self, session: Session, state: JournalState, error: StoreError | None) -> None:
        """React to a change of the journal's state: pause or release the agent, notify clients, end the session."""
        session.binding.pause("waiting", state is JournalState.WAITING)
        if state is JournalState.FENCED:
            self._taken_over(session, error)
        elif state is JournalState.UNKEPT:
            session.notice(f"This conversation is not being saved any more: {error}", "error")
            for attachment in list(session.attachments):  # from now on a slow client pauses its agent
                attachment.client.peer_writable(attachment.client.writable)
        elif state is JournalState.STORED:
            for attachment in list(session.attachments):  # a slow client reads on from the journal again
                if session.agent is not None:
                    session.agent.release(attachment.client)
                    attachment.client.peer_writable(attachment.client.writable)  # keeps other sessions' holds
            session.entry.save(SessionChanges())

    def _taken_over(self, session: Session, error: StoreError | None) -> None:
        """Close a session that another process took over, with its agent: two must not work in one folder."""
        title = f"Another process took this session over: {error} Load it again to go on with it."
        log.error(title, extra={"session": session.id})
        self._end_at_once(session, title, "session_taken")

    def policy_changed(self, workspace: str, text: str, severity: str) -> None:
        """Announce a change of the rules to the clients of the sessions that they hold for, and journal it."""
        for session in self.sessions.values():
            rules_of = session.entry.repository or session.workspace
            if rules_of == workspace and not session.follows and not session.closed:
                session.notice(text, severity)

    def session_broken(self, session: Session, error: IllegalTransition) -> None:
        """End a session after a bug of ours, when the code that met it has returned; other sessions go on."""
        log.error("session ends: %s", error.message, extra={"session": session.id})
        self.spawn(self._end_broken(session))

    async def _end_broken(self, session: Session) -> None:
        if self.sessions.get(session.id) is session:
            self._end_at_once(session, BROKEN, "session_broken")

    def _end_at_once(self, session: Session, title: str, reason: str) -> None:
        """Tell the clients, fail the turn and close the session with its agent."""
        for attachment in session.attachments:
            attachment.tell(title, "error")
        if session.turn is not None:
            session.turn.fail(internal(title, reason, sessionId=session.id))
        session.prompts.fail_all(internal(title, reason, sessionId=session.id))
        self.spawn(self.close_session(session))

    def journal_delayed(self, session: Session, error: StoreError | None) -> None:
        """Send a notice to all attached clients at once, ahead of the events that wait."""
        patience = self.config.sessions.write_patience
        end = (
            f" After {patience:g} s (sessions.write_patience) it goes on without being saved."
            if patience
            else ""
        )
        title, severity = "This conversation is being saved again.", "info"
        if error is not None:
            title = f"This conversation cannot be saved: {error} Its agent waits until it can.{end}"
            severity = "error"
        for attachment in list(session.attachments):
            attachment.tell(title, severity)

    def _lease_lost(self, session_id: str, error: StoreError) -> None:
        session = self.sessions.get(session_id)
        if session is not None and session.journal is not None:
            session.journal.lose(error)

    def claim_journal(self, session: Session) -> None:
        self.spawn(self.directory.claim_journal(session))

    async def _say_unkept(self, session: Session, trouble: str) -> None:
        session.notice(f"This conversation is not being saved: {trouble}", "error")

    # -- life

    async def close(self) -> None:
        """Shut down: settle every turn, disconnect every client, end every agent, close the store (G-115)."""
        self.closing = True
        self.parking.close()
        error = internal("Dragoman is shutting down", "shutdown")
        for session in list(self.sessions.values()):
            session.prompts.fail_all(error)
            if session.turn is not None:
                session.turn.fail(error)
        await self._settle_sessions()
        for task in self.housekeeping:
            task.cancel()
        for client in list(self.clients):
            client.peer.link.close()
            client.peer.link_closed("shutdown")  # starts the client's clean-up while the store is open
        self.said_goodbye.set()
        await self.pool.close()
        await self._finish_tasks()
        if self.boxes is not None:
            await self.boxes.close()
        if self.store is not None:
            await self.store.close()
            self.store = None

    async def _finish_tasks(self) -> None:
        """Wait for the work in the background, and for what that begins in turn, while the store is open."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FINISH_TIMEOUT):
                while pending := self.tasks - {asyncio.current_task()}:
                    await asyncio.wait(pending)

    async def _settle_sessions(self) -> None:
        """Send the last answers before the links close, even if the store hangs or fails."""
        settled = await settle(self.sessions.values(), SETTLE_TIMEOUT)
        for session in list(self.sessions.values()):
            if session.journal is not None:
                session.journal.end(answered=session in settled)
