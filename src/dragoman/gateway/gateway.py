"""The gateway: its sessions, clients and agents. Everything that does IO is passed in as `Outside`."""

from __future__ import annotations

import asyncio
import fnmatch
import itertools
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar
from weakref import WeakValueDictionary

from dragoman.config.model import AgentConfig, Config, PolicyConfig
from dragoman.gateway.access.capabilities import fingerprint
from dragoman.gateway.access.quotas import Places
from dragoman.gateway.client import ClientConnection, Terms
from dragoman.gateway.delivery.journal_state import JournalState
from dragoman.gateway.json_types import JsonObject
from dragoman.gateway.lifecycle.parking import Parking
from dragoman.gateway.lifecycle.retention import renew_leases, run_retention
from dragoman.gateway.ownership import owner_connection
from dragoman.gateway.ownership.directory import Directory, StoreDirectory
from dragoman.gateway.ownership.memory_directory import MemoryDirectory
from dragoman.gateway.pool import Pool
from dragoman.gateway.ports.agent import CapabilityCache, Dialer, Launcher
from dragoman.gateway.ports.followers import Followers
from dragoman.gateway.ports.sandbox import Box, Boxes
from dragoman.gateway.ports.services import ServicesFactory
from dragoman.gateway.ports.store import HeldElsewhere, SessionChanges, Store, StoreError
from dragoman.gateway.ports.witness import Several, Witness
from dragoman.gateway.session.session import Session
from dragoman.gateway.session.states import IllegalTransition
from dragoman.gateway.session.stream import settle
from dragoman.rpc.byte_budget import ByteBudget
from dragoman.wire import limits
from dragoman.wire.errors import RpcError, internal, invalid_params

log = logging.getLogger(__name__)

T = TypeVar("T")

SETTLE_TIMEOUT = 2.0
"""Seconds to wait at shutdown until the last events are stored."""

BROKEN = (
    "This session ended because of an error in Dragoman; its log says which. Load the session again to go on."
)


class AgentDirectory(Protocol):
    """Agents by name."""

    def find(self, name: str) -> AgentConfig:
        """The agent's configuration; raises `RpcError` that suggests the nearest names."""

    def names(self) -> list[str]: ...


class SessionWatcher(Protocol):
    """Is notified of changes of sessions; called in the middle of other work, so it must only note them."""

    def session_changed(self, session: Session) -> None: ...

    def session_stopping(self, session: Session) -> None:
        """A client asked for a cancel, whether a turn runs or not."""

    def session_deleted(self, session_id: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Outside:
    """Everything that the gateway needs from outside."""

    agents: AgentDirectory
    launcher: Launcher
    cache: CapabilityCache
    services: ServicesFactory
    dialer: Dialer
    followers: Followers | None = None
    store: Store | None = None
    trouble: str | None = None
    """Why there is no store although one is configured."""
    boxes: Boxes | None = None
    policy_for: Callable[[str], PolicyConfig] | None = None
    """The policy for a workspace, which may narrow the general one; None: the same for all."""
    witness: Witness = field(default_factory=Several)


class Gateway:
    def __init__(self, config: Config, outside: Outside) -> None:
        self.config = config
        self.agents = outside.agents
        self.launcher = outside.launcher
        self.cache = outside.cache
        self.services = outside.services
        self.dialer = outside.dialer
        self.followers = outside.followers
        self.boxes = outside.boxes
        self.policy_for = outside.policy_for or (lambda workspace: config.policy)
        self.store = outside.store
        self.trouble = outside.trouble
        self.witness = outside.witness
        self.pool = Pool(self)
        self.parking = Parking(self)
        self.sessions: dict[str, Session] = {}
        self.places = Places(self)
        self.directory: Directory = MemoryDirectory()
        self.clients: set[ClientConnection] = set()
        self._request_budget = ByteBudget(limits.GATEWAY_REQUEST_BYTES)
        self._request_shares: WeakValueDictionary[str, ByteBudget] = WeakValueDictionary()
        """By the name of a token, as long as a client with that token is connected."""
        self.watchers: list[SessionWatcher] = []
        self.closing = False
        self.said_goodbye = asyncio.Event()
        """Set at shutdown, when the links of all clients are closed."""
        self._taking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._someone_left = asyncio.Event()
        self._housekeeping: list[asyncio.Task[None]] = []
        self._keys = itertools.count(1)
        self._tasks: set[asyncio.Task[Any]] = set()
        if self.store is not None:
            self.directory = StoreDirectory(self.store, self.config.sessions.write_patience)
            self.store.on_lost = self._lease_lost
            self._housekeeping = [
                self.spawn(run_retention(self, self.store)),
                self.spawn(renew_leases(self, self.store)),
            ]

    @property
    def journaling(self) -> bool:
        return self.store is not None

    # -- clients

    def connect(self, terms: Terms) -> ClientConnection:
        """Add a new client; its transport opens the link."""
        client = ClientConnection(self, next(self._keys), terms)
        self.clients.add(client)
        return client

    # -- agents

    def agent_config(self, name: str) -> AgentConfig:
        return self.agents.find(name)

    def agent_for(self, cwd: str, asked: object) -> str:
        """The agent for a session of an unbound client (G-036)."""
        if isinstance(asked, str) and asked:
            return asked
        for rule in self.config.workspaces:
            if rule.agent is not None and _matches(rule.path, cwd):
                return rule.agent
        return self.config.default_agent

    def box_for(
        self, name: str, cwd: str | None, workspace: str | None, wanted: str | None = None
    ) -> Box | None:
        """The sandbox for a session of an agent; before any session, one with an empty workspace."""
        if self.boxes is None or self.agent_config(name).kind == "remote":  # remote agents have no sandbox
            if wanted is not None:
                raise invalid_params(f"There is no sandbox {wanted} for the agent {name}", "sandbox")
            return None
        return self.boxes.find(name, self.agent_config(name), cwd, workspace, wanted)

    def cached_capabilities(
        self, config: AgentConfig, told: JsonObject, box: Box | None = None
    ) -> JsonObject | None:
        identity = (box or self.launcher).identity(config)
        return self.cache.get(identity, fingerprint(told)) if identity is not None else None

    def remember_capabilities(
        self, config: AgentConfig, told: JsonObject, result: JsonObject, box: Box | None = None
    ) -> None:
        """Update the cache if the agent's result has changed."""
        identity = (box or self.launcher).identity(config)
        if identity is not None and self.cache.get(identity, fingerprint(told)) != result:
            self.cache.put(identity, fingerprint(told), result)

    # -- sessions

    def changed(self, session: Session) -> None:
        """Notify the watchers of a change that a list of sessions shows; never called per message."""
        for watcher in self.watchers:
            watcher.session_changed(session)

    def request_share(self, token: str) -> ByteBudget:
        """The byte budget for requests in flight of all clients with this token."""
        share = self._request_shares.get(token)
        if share is None:
            share = ByteBudget(limits.TOKEN_REQUEST_BYTES, self._request_budget)
            self._request_shares[token] = share
        return share

    def stopping(self, session: Session) -> None:
        """Notify the watchers before a turn is cancelled, so that they hold queued prompts back."""
        for watcher in self.watchers:
            watcher.session_stopping(session)

    def deleted(self, session_id: str) -> None:
        for watcher in self.watchers:
            watcher.session_deleted(session_id)

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

    async def claim_agent_session(self, agent: str, agent_session_id: str) -> None:
        await self.directory.claim(agent, agent_session_id)

    async def reach(self, session: Session, client: ClientConnection, held: HeldElsewhere) -> None:
        """Connect to the owner of a session over its socket."""
        await owner_connection.reach(
            session, client, lambda handler: self.dialer.dial(held.owner.address, handler)
        )

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
            self.left(session)

    async def close_session(self, session: Session) -> None:
        """End a session and, with its last one, the agent process (G-057)."""
        agent = session.agent
        if agent is not None:
            session.binding.lose()
        session.feed.agent_gone()
        session.services.release_terminals()
        session.entry.save(SessionChanges(state="closed"))
        await self.unload(session)
        await session.services.close()
        if agent is not None:
            self.pool.reap(agent)

    async def unload(self, session: Session) -> None:
        """Unload a session: detach its clients, drop it from memory and release its lease."""
        self.parking.forget(session)
        for attachment in list(session.attachments):
            session.detach(attachment.client)
        if self.sessions.get(session.id) is session:
            del self.sessions[session.id]
        self.changed(session)
        session.silence.stop()
        if session.journal is not None:
            session.journal.stop()
        try:
            async with self.taking(session.id):
                if session.id not in self.sessions:  # else it was loaded again meanwhile
                    await self.directory.release(session)
        except StoreError as error:
            log.warning("lease was not given back: %s", error, extra={"session": session.id})

    def left(self, session: Session) -> None:
        """A client detached: unload a parked session, or stop following one, when no client is attached."""
        if (session.parked or session.owned_elsewhere) and not session.attachments:
            self.spawn(self._unload_unless_used(session))

    async def _unload_unless_used(self, session: Session) -> None:
        if session.attachments or session.attaching or session.turn or session.recovery.restarting:
            return
        if self.sessions.get(session.id) is not session:
            return
        if session.owned_elsewhere:  # the owner may wait until the last client has left
            await self.close_session(session)
        elif session.parked:
            await self.unload(session)

    async def unwatched(self) -> None:
        """Wait until no client is attached to any session."""
        while any(session.attachments for session in self.sessions.values()):
            self._someone_left.clear()
            await self._someone_left.wait()

    def client_left(self, client: ClientConnection) -> None:
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

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run a coroutine in the background; its errors are logged."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    async def close(self) -> None:
        """Shut down: settle every turn, disconnect every client, end every agent, close the store (G-115)."""
        self.closing = True
        self.parking.close()
        error = internal("Dragoman is shutting down", "shutdown")
        for session in list(self.sessions.values()):
            if session.turn is not None:
                session.turn.fail(error)
        await self._settle_sessions()
        for task in self._housekeeping:
            task.cancel()
        for client in list(self.clients):
            client.peer.link.close()
            client.peer.link_closed("shutdown")  # starts the client's clean-up while the store is open
        self.said_goodbye.set()
        await self.pool.close()
        pending = [task for task in self._tasks if task is not asyncio.current_task()]
        if pending:
            await asyncio.wait(pending, timeout=10)
        if self.boxes is not None:
            await self.boxes.close()
        if self.store is not None:
            await self.store.close()
            self.store = None

    async def _settle_sessions(self) -> None:
        """Send the last answers before the links close, even if the store hangs or fails."""
        settled = await settle(self.sessions.values(), SETTLE_TIMEOUT)
        for session in list(self.sessions.values()):
            if session.journal is not None:
                session.journal.end(answered=session in settled)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            if isinstance(error, RpcError):
                log.info("background work failed: %s", error.message)
            else:
                log.error("background work failed", exc_info=error)


def _matches(pattern: str, cwd: str) -> bool:
    path = str(Path(pattern).expanduser())
    return cwd == path or cwd.startswith(path.rstrip("/") + "/") or fnmatch.fnmatchcase(cwd, path)
