"""The bridge: its pages, the session hubs, and the session changes that are sent to all pages."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Raw

from dragoman import __version__
from dragoman.bridge import limits
from dragoman.bridge.background_client import BackgroundClients, Tokens
from dragoman.bridge.client import BridgeClient
from dragoman.bridge.commands.table import Outcome
from dragoman.bridge.errors import BridgeError, unknown_session
from dragoman.bridge.events.summary import summary
from dragoman.bridge.message import Message
from dragoman.bridge.restore import Restored, restore_state
from dragoman.bridge.session_hub import SessionHub
from dragoman.gateway.access.client import Terms
from dragoman.gateway.access.identity import Identity
from dragoman.gateway.access.rate_limit import RateLimit
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.json_types import JsonObject
from dragoman.gateway.ownership.entries import SessionEntry
from dragoman.gateway.ports.store import StoreError
from dragoman.gateway.session.prompts.queue import Waiting
from dragoman.gateway.session.session import Session
from dragoman.wire.errors import invalid_params

log = logging.getLogger(__name__)


Key = tuple[str, str]
"""Token name and command id; stored per token, so that one token cannot push out the entries of another."""


class RecentCommands:
    """Outcomes of recent commands."""

    def __init__(self) -> None:
        self._outcomes: dict[str, dict[str, Outcome]] = {}
        """By token, oldest first."""

    def get(self, key: Key) -> Outcome | None:
        token, command = key
        return self._outcomes.get(token, {}).get(command)

    def begin(self, key: Key) -> Outcome:
        token, command = key
        outcome: Outcome = asyncio.get_running_loop().create_future()
        known = self._outcomes.setdefault(token, {})
        known[command] = outcome
        if len(known) > limits.REMEMBERED_COMMANDS:
            # Running commands stay, to be recognized when sent again; their number has a limit of its own.
            over = next((each for each, former in known.items() if former.done()), None)
            if over is not None:
                del known[over]
        return outcome

    def end(self, key: Key, found: str | BridgeError | None) -> None:
        """Set the outcome; a failed command is dropped and may be tried again under the same id."""
        outcome = self.get(key)
        if outcome is not None and not outcome.done():
            outcome.set_result(found)
        if isinstance(found, BridgeError):
            token, command = key
            self._outcomes.get(token, {}).pop(command, None)


class Bridge:
    """Implements `SessionWatcher`."""

    def __init__(
        self, gateway: Gateway, describe_agents: Callable[[], list[JsonObject]], tokens: Tokens
    ) -> None:
        self.gateway = gateway
        self.clients: set[BridgeClient] = set()
        self.hubs: dict[str, SessionHub] = {}
        self.recent_commands = RecentCommands()
        self._describe_agents = describe_agents
        self.background_clients = BackgroundClients(gateway, tokens)
        self._changed: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None
        gateway.watchers.append(self)

    def connect(self, identity: Identity, rate_limit: RateLimit) -> BridgeClient:
        """Make the client of a new page; its socket opens the link."""
        keep = self.gateway.journaling and self.gateway.config.sessions.on_disconnect == "keep"
        return BridgeClient(
            self,
            Terms(
                keep_sessions=keep,
                start_ahead=False,
                restart_on_load=False,
                identity=identity,
                revoked=partial(self.background_clients.revoked, identity),
            ),
            rate_limit,
        )

    def hello(self, identity: Identity) -> JsonObject:
        config = self.gateway.config
        return {
            "type": "hello",
            "version": __version__,
            "bridge": 1,
            "role": str(identity.role),
            "identity": identity.name,
            "agents": self._describe_agents(),
            "defaultAgent": config.default_agent,
            "sandboxes": list(config.sandboxes),
            "home": str(Path.home()),
            "folder": _started_in(),
            "limits": {"maxMessageBytes": config.limits.max_message_bytes},
        }

    # -- sessions

    async def find(self, session_id: object) -> SessionEntry:
        kept = await self.gateway.directory.get(session_id) if isinstance(session_id, str) else None
        if kept is None:
            raise unknown_session()
        return kept

    async def hub(self, session_id: str) -> SessionHub:
        """The hub of a session, made on first use with the state from the end of the journal."""
        if session_id not in self.hubs:
            store, recalled = self.gateway.store, Restored()
            if store is not None:
                recalled = await restore_state(store, session_id)
            self.hubs.setdefault(session_id, SessionHub(session_id, self.background_clients, recalled))
        return self.hubs[session_id]

    def new_hub(self, session_id: str) -> SessionHub:
        return self.hubs.setdefault(session_id, SessionHub(session_id, self.background_clients, Restored()))

    def tidy(self, session_id: str) -> None:
        """Drop the hub of a session that is not in memory and has no pages; the journal can restore it."""
        hub = self.hubs.get(session_id)
        if hub is not None and not hub.watchers and session_id not in self.gateway.sessions:
            del self.hubs[session_id]

    @asynccontextmanager
    async def live_session(self, session_id: str) -> AsyncIterator[Session]:
        """The session, live in this process until the last command that uses it ends."""
        session = await self._use(session_id)
        try:
            yield session
        finally:
            session.end_attach()
            session.detach(self.background_clients.gateway_client().client)
            if self.gateway.has(session) and session.turn is None:
                self.gateway.idle(session)
                self.gateway.detached(session)

    async def _use(self, session_id: str) -> Session:
        """The session, which is not unloaded before its `end_attach`; a background client resumes a stored one."""
        used: list[Session] = []

        def use() -> None:
            session = self.gateway.sessions.get(session_id)
            if session is not None:
                session.begin_attach()
                used.append(session)

        use()
        if not used:
            kept = await self.find(session_id)
            # Used as soon as it is resumed: another command may end now, and detach the same background client.
            await self.background_clients.gateway_client().result(
                "session/resume", {"sessionId": session_id, "cwd": kept.cwd}, lambda _: use()
            )
        if not used:
            raise unknown_session()
        return used[0]

    # -- SessionWatcher

    def session_changed(self, session: Session) -> None:
        hub = self.hubs.get(session.id)
        if hub is not None:
            if hub.turn_over(session):
                asyncio.get_running_loop().call_soon(hub.send_on, session)
            self.tidy(session.id)
        if not self.clients:
            return
        for client in self.clients:
            if client.lacks(session.id):
                asyncio.get_running_loop().call_soon(self._rejoin, client, session.id)
        if any(client.hears_of(session.id) for client in self.clients):
            self._changed.add(session.id)
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(limits.CHANGE_PAUSE, self._tell)

    def session_stopping(self, session: Session) -> None:
        hub = self.hubs.get(session.id)
        if hub is not None:
            hub.stop(session)

    def waiting(self, session_id: str) -> list[Waiting]:
        hub = self.hubs.get(session_id)
        return hub.waiting() if hub is not None else []

    def change_waiting(self, session_id: str, id: str, prompt: Raw | None, editor: Identity) -> None:
        try:
            message = Message.read({"content": msgspec.json.decode(prompt)}, None) if prompt else None
            self.hubs[session_id].edit(self.gateway.sessions[session_id], id, message, editor)
        except BridgeError as error:
            raise invalid_params(error.message, error.code) from error

    def _rejoin(self, client: BridgeClient, session_id: str) -> None:
        session = self.gateway.sessions.get(session_id)
        if session is not None and client in self.clients and client.lacks(session_id):
            client.rejoin(session)

    def session_deleted(self, session_id: str) -> None:
        self._changed.discard(session_id)
        self.hubs.pop(session_id, None)
        for client in self.clients:
            if client.hears_of(session_id):
                client.tell({"type": "session_deleted", "sessionId": session_id})

    def _tell(self) -> None:
        self._timer = None
        changed, self._changed = self._changed, set()
        self.gateway.spawn(self._tell_changes(changed))

    async def _tell_changes(self, changed: set[str]) -> None:
        for session_id in changed:
            try:
                kept = await self.gateway.directory.get(session_id)
            except StoreError as error:
                log.error("changes cannot be told: %s", error, extra={"session": session_id})
                return
            if kept is None:
                continue
            event = {"type": "session_changed", "session": summary(self.gateway.sessions.get(kept.id), kept)}
            for client in self.clients:
                if client.hears_of(session_id):
                    client.tell(event)


def _started_in() -> str:
    """The suggested folder: where `serve` was started, or the home directory for a service started in `/`."""
    here = Path.cwd()
    return str(Path.home() if here == Path(here.anchor) else here)
