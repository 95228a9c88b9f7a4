"""The connection to the process that owns a session, used as if it were the session's agent.

The owner knows that this process has several clients, so it sends more than an agent: the begin and end of a replay
that one client asked for, and what clients here sent themselves, marked, so that the other clients here get it in its
place in the order and its author does not. Each event has its number, so that clients here can continue from there when
the owner is gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from dragoman.config.model import AgentConfig
from dragoman.gateway.access.capabilities import AgentCapabilities
from dragoman.gateway.agent import AgentConnection
from dragoman.gateway.agent_link import Launch
from dragoman.gateway.delivery.feed import REPLAY, REPLAYED, DirectFeed
from dragoman.gateway.delivery.replay import own_facts, read_facts, without_own
from dragoman.gateway.json_types import JsonObject, as_object, decode_object, encode, with_own_meta
from dragoman.gateway.lifecycle.closing import CLOSED
from dragoman.gateway.rewriting.rewrite import session_of
from dragoman.gateway.rewriting.updates import UpdateHead
from dragoman.gateway.session.questions.answerer import HEARD
from dragoman.wire.errors import RpcError, internal

if TYPE_CHECKING:
    from dragoman.gateway.access.client import Client
    from dragoman.gateway.registry import Registry
    from dragoman.gateway.session.session import Session

log = logging.getLogger(__name__)

OWNER_CAPABILITIES: JsonObject = {  # the owner itself checks what its agent can do
    "agentCapabilities": {
        "loadSession": True,
        "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
        "mcpCapabilities": {"http": True, "sse": True},
        "sessionCapabilities": {"resume": {}, "additionalDirectories": {}},
    }
}

DELAYS = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Seconds before each try to take over after the owner is gone."""


class OwnerGone(RpcError):
    """The owner ended before it answered; a retry takes the session over, or finds its new owner."""


class OwnerConnection(AgentConnection):
    is_owner = True
    session: Session
    on_closed: Callable[[], object]
    """Called when a client of the owner closed the session: it is closed for the clients here too."""
    uneven = 0
    """Up to this event clients here have different positions: each event is sent only to those that lack it."""
    _replaying = False
    _last = 0
    """The number of the last event received live, for all clients here."""
    _last_replayed = 0
    """The number of the last event of the replay under way, or not answered yet, sent to one client."""
    _unanswered = False
    """A client waits for the answer to its load or resume."""
    _replayed = 0
    """The number of the last event of the last replay; all clients have everything up to it."""

    @property
    def position(self) -> int:
        """The last event that all clients here have."""
        return max(self._last, self._replayed)

    @property
    def cut_off(self) -> bool:
        """Whether the owner ended after a client got a replay or a part of it, and before the answer."""
        return not self.alive and self._last_replayed > 0

    def load_sent(self) -> None:
        """A load or resume is sent to the owner."""
        self._unanswered, self._last_replayed = True, 0

    def answered(self) -> None:
        self._unanswered = False
        if not self._replaying:
            self._last_replayed = 0

    def gone_error(self) -> RpcError:
        return internal(
            "The process that had this session ended; load the session again", "agent_exited", agent=self.name
        )

    def _update(self, head: UpdateHead, line: bytes) -> None:
        facts = own_facts(head.meta)
        if facts.seq:
            self._numbered(facts.seq)
        bound = head.session_id in self.sessions
        feed = self.session.feed
        if bound and isinstance(feed, DirectFeed):
            feed.kept_elsewhere = facts.kept
        if not bound or not facts.own:
            super()._update(head, line)
        else:
            self.session.own_update(head.kind, without_own(line))

    def _numbered(self, seq: int) -> None:
        """Note that the next line is event `seq`."""
        if self._replaying:
            self._last_replayed = seq
        else:
            self._last = seq
        if self.uneven:
            self._even_out(seq)

    def _even_out(self, seq: int) -> None:
        """Send this event only to clients that lack it; to all again after event `uneven`."""
        self.uneven = self.uneven if seq <= self.uneven else 0
        if self.sessions and isinstance(self.session.feed, DirectFeed):
            self.session.feed.show_after(seq if self.uneven else None)

    def peer_notification(self, method: str, params: bytes) -> None:
        feed = self.session.feed if session_of(params) in self.sessions else None
        if method == REPLAY and isinstance(feed, DirectFeed):
            self._replaying, self._last_replayed = feed.waiting is not None, 0
            feed.replay_begins(self.position)
        elif method == REPLAYED and isinstance(feed, DirectFeed):
            self._replaying, self.uneven = False, 0
            if not self._unanswered:
                self._last_replayed = 0
            self._replayed = read_facts(params).seq
            feed.replayed_until(self._replayed)
        elif method == HEARD and feed is not None:
            told = decode_object(params)
            self.session.questions.heard_approval(str(told.get("requestId")), as_object(told.get("approval")))
        elif method == CLOSED and feed is not None:
            self.on_closed()
        else:
            super().peer_notification(method, params)

    def peer_closed(self, reason: str | None) -> RpcError:
        session, bound = self.session, bool(self.sessions)
        if bound and isinstance(session.feed, DirectFeed):
            session.feed.lost(self.position, self._last_replayed)
        error = super().peer_closed(reason)
        if bound:
            session.gateway.spawn(_go_on(session))
        return error


async def reach(gateway: Registry, session: Session, client: Client, launch: Launch) -> None:
    """Connect to the owner of a session and bind it as the session's agent."""
    owner = OwnerConnection(
        gateway, session.agent_name, AgentConfig(kind="remote", command=[]), client, shared=False
    )
    owner.session = session
    owner.on_closed = lambda: gateway.spawn(gateway.close_session(session))
    timeout = session.gateway.config.limits.start_timeout
    try:
        await owner.start(launch, _for_owner(client.capabilities.raw), client.info, timeout)
    except RpcError as error:
        ended = owner.handle is not None and owner.peer.closed
        await owner.stop()
        if ended:  # the connection was open a moment ago
            raise OwnerGone(error.code, owner.gone_error().message, {"reason": "session_held"}) from error
        raise internal(
            f"Session {session.id} is open in another Dragoman process, which cannot be reached: {error.message}. "
            "Nothing was started in its place. Go on with the session where it is open, or end that process and "
            "try again.",
            "session_held",
            sessionId=session.id,
        ) from error
    await _check_open(session, owner)
    owner.capabilities = AgentCapabilities(OWNER_CAPABILITIES)
    session.binding.held_elsewhere()
    feed = session.feed
    assert isinstance(feed, DirectFeed)
    async with feed.replaying:  # clients that attach meanwhile come after those attached now
        await _check_open(session, owner)
        session.bind(owner, session.id)
        if session.attachments:
            settling = session.gateway.spawn(_resume_at_new_owner(gateway, session, owner, feed))
            session.recovery.settle(settling)
            await asyncio.shield(settling)


async def _check_open(session: Session, owner: OwnerConnection) -> None:
    """Disconnect and raise if the session was closed meanwhile: its state must not change any more."""
    if session.closed:
        await owner.stop()
        session.binding.check_open()


async def _resume_at_new_owner(
    gateway: Registry, session: Session, owner: OwnerConnection, feed: DirectFeed
) -> None:
    """Resume at a new owner: each client attached here continues after the last event that it has."""
    positions = [each.position for each in feed.attachments if not each.reads_journal] or [feed.delivered]
    owner.uneven = max(positions) if len(set(positions)) > 1 else 0
    facts = {"afterSeq": min(positions), "wake": False}
    params = {"sessionId": session.id, "cwd": session.cwd, "_meta": {"dragoman": facts}}
    reply = await owner.ask("session/resume", encode(params), session.gateway.config.limits.start_timeout)
    if not reply.ok:
        session.unbind()
        feed.replay_ended()
        gateway.pool.reap(owner)
        raise reply.as_error()
    await feed.wait_replayed()


def _for_owner(capabilities: JsonObject) -> JsonObject:
    """The capabilities sent to the owner: the client's, plus what a process with several clients needs.

    Questions have ids, replays are marked and all updates are numbered; a client that did not ask for numbers ignores
    `_meta`. Options come complete, and `models` only as the agent sent them: they are adapted to each client here.
    """
    session = as_object(capabilities.get("session"))
    options = {**as_object(session.get("configOptions")), "boolean": {}}
    told = {**capabilities, "session": {**session, "configOptions": options}}
    return with_own_meta(told, questions=True, replays=True, seq=True, models=False)


async def _go_on(session: Session) -> None:
    """Take over a session whose owner is gone, or follow its new owner, for the clients attached here.

    No agent is started; the next prompt does that. An owner that shuts down may need time to release its lease.
    """
    for delay in DELAYS:
        with suppress(TimeoutError):
            await asyncio.wait_for(session.gateway.said_goodbye.wait(), delay)
        clients = session.clients_by_preference() or [each.client for each in session.attachments]
        if not clients or session.gateway.closing or not session.gateway.has(session):
            return
        try:
            await session.take_over(clients[0])
        except RpcError as error:
            log.info("session cannot be taken over yet: %s", error.message, extra={"session": session.id})
        else:
            return
    log.warning("session was not taken over; the next prompt tries again", extra={"session": session.id})
