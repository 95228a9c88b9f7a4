"""The process of ours that has a session, spoken to as if it were the session's agent.

It knows that this process has clients of its own, so it says more than an agent does: where the replay begins and ends
that one of them asked for, and what they said themselves, marked, so that the others here see it in its place in the
order and whoever prompted does not. All that it says has its number, so that its clients here can go on from there when
it is gone.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from dragoman.config.model import AgentConfig
from dragoman.gateway.access.capabilities import AgentCapabilities
from dragoman.gateway.agent import AgentConnection, Launch
from dragoman.gateway.delivery.feed import REPLAY, REPLAYED, DirectFeed
from dragoman.gateway.delivery.replay import own_facts, read_facts, without_own
from dragoman.gateway.json_types import JsonObject, as_object, encode
from dragoman.gateway.lifecycle import restart_agent
from dragoman.gateway.ownership import takeover
from dragoman.gateway.rewriting.rewrite import session_of
from dragoman.gateway.rewriting.updates import UpdateHead
from dragoman.wire.errors import RpcError, internal

if TYPE_CHECKING:
    from dragoman.gateway.client import ClientConnection
    from dragoman.gateway.session.session import Session

log = logging.getLogger(__name__)

OWNER_CAPABILITIES: JsonObject = {  # the process that owns a session checks for itself what its agent can
    "agentCapabilities": {
        "loadSession": True,
        "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
        "mcpCapabilities": {"http": True, "sse": True},
        "sessionCapabilities": {"resume": {}, "additionalDirectories": {}},
    }
}

DELAYS = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Seconds before each try to go on without it."""


class OwnerGone(RpcError):
    """The process that had the session ended before it answered: whoever comes again finds the session elsewhere."""


class OwnerConnection(AgentConnection):
    is_owner = True
    uneven = 0
    """Up to this event some clients here have what others lack: a replay for all of them is shown by its numbers."""
    _replaying = False
    _last = 0
    """The number of the last event that all clients here were shown."""
    _last_replayed = 0
    """The last one that was shown to the client alone whose replay is under way."""
    _replayed = 0
    """Where the last replay ended: up to there everybody has everything."""

    @property
    def position(self) -> int:
        """The last event that all clients here have."""
        return max(self._last, self._replayed)

    @property
    def cut_off(self) -> bool:
        """It ended in the middle of a replay, of which a client was shown a part."""
        return not self.alive and self._last_replayed > 0

    def gone_error(self) -> RpcError:
        return internal(
            "The process that had this session ended; load the session again", "agent_exited", agent=self.name
        )

    def _update(self, head: UpdateHead, line: bytes) -> None:
        facts = own_facts(head.meta)
        if facts.seq:
            self._numbered(facts.seq)
        session = self.sessions.get(head.session_id)
        feed = session.feed if session is not None else None
        if isinstance(feed, DirectFeed):
            feed.kept_elsewhere = facts.kept
        if session is None or not facts.own:
            super()._update(head, line)
        else:
            session.own_update(head.kind, without_own(line))

    def _numbered(self, seq: int) -> None:
        """The next line is event `seq`."""
        if self._replaying:
            self._last_replayed = seq
        else:
            self._last = seq
        if self.uneven:
            self._even_out(seq)

    def _even_out(self, seq: int) -> None:
        """Show this event to those who lack it."""
        self.uneven = self.uneven if seq <= self.uneven else 0
        for session in self.sessions.values():
            if isinstance(session.feed, DirectFeed):
                session.feed.show_after(seq if self.uneven else None)

    def peer_notification(self, method: str, params: bytes) -> None:
        session = self.sessions.get(session_of(params) or "")
        feed = session.feed if session is not None else None
        if method == REPLAY and isinstance(feed, DirectFeed):
            self._replaying, self._last_replayed = feed.waiting is not None, 0
            feed.replay_begins()
        elif method == REPLAYED and isinstance(feed, DirectFeed):
            self._replaying, self._last_replayed, self.uneven = False, 0, 0
            self._replayed = read_facts(params).seq
            feed.replayed_until(self._replayed)
        else:
            super().peer_notification(method, params)

    def peer_closed(self, reason: str | None) -> RpcError:
        orphans: list[Session] = list(self.sessions.values())
        for session in orphans:
            if isinstance(session.feed, DirectFeed):
                session.feed.lost(self.position, self._last_replayed)
        error = super().peer_closed(reason)
        for session in orphans:
            session.gateway.spawn(_go_on(session))
        return error


async def reach(session: Session, client: ClientConnection, launch: Launch) -> None:
    """The session lives in another process: speak to that one as if it were the agent."""
    owner = OwnerConnection(session.agent_name, AgentConfig(kind="remote", command=[]), client, shared=False)
    timeout = session.gateway.config.limits.start_timeout
    try:
        await owner.start(launch, _for_owner(client.capabilities.raw), client.info, timeout)
    except RpcError as error:
        ended = owner.handle is not None and owner.peer.closed
        await owner.stop()
        if ended:  # it was there a moment ago
            raise OwnerGone(error.code, owner.gone_error().message, {"reason": "session_held"}) from error
        raise internal(
            f"Session {session.id} is open in another Dragoman process, which cannot be reached: {error.message}. "
            "Nothing was started in its place. Go on with the session where it is open, or end that process and "
            "try again.",
            "session_held",
            sessionId=session.id,
        ) from error
    owner.capabilities = AgentCapabilities(OWNER_CAPABILITIES)
    session.agent_session_id = session.id
    session.held_elsewhere()
    feed = session.feed
    assert isinstance(feed, DirectFeed)
    async with feed.replaying:  # whoever comes meanwhile comes after those who are here
        session.bind(owner, session.id)
        if session.attachments:
            session.settling = session.gateway.spawn(_take_up(session, owner, feed))
            await asyncio.shield(session.settling)


async def _take_up(session: Session, owner: OwnerConnection, feed: DirectFeed) -> None:
    """Clients of a session whose former process is gone go on from the last event that each has."""
    positions = [each.position for each in feed.attachments if not each.reads_journal] or [feed.delivered]
    owner.uneven = max(positions) if len(set(positions)) > 1 else 0
    facts = {"afterSeq": min(positions), "wake": False}
    params = {"sessionId": session.id, "cwd": session.cwd, "_meta": {"dragoman": facts}}
    try:
        reply = await owner.ask("session/resume", encode(params), session.gateway.config.limits.start_timeout)
        if not reply.ok:
            restart_agent.unbind(session, owner)
            feed.replay_ended()
            session.gateway.pool.reap(owner)
            raise restart_agent.as_error(reply)
        await feed.replayed()
    finally:
        if session.settling is asyncio.current_task():
            session.settling = None


def _for_owner(capabilities: JsonObject) -> JsonObject:
    """Whoever watches here may read the other process's journal, where questions have names, and is not alone.

    Updates are numbered for all as soon as one may want that: those who did not ask for it do not look at `_meta`.
    Options come whole, and `models` only as the agent told them: each client here is shown what it knows.
    """
    meta = as_object(capabilities.get("_meta"))
    own = {
        **as_object(meta.get("dragoman")),
        "questions": True,
        "replays": True,
        "seq": True,
        "models": False,
    }
    session = as_object(capabilities.get("session"))
    options = {**as_object(session.get("configOptions")), "boolean": {}}
    told = {**capabilities, "session": {**session, "configOptions": options}}
    return {**told, "_meta": {**meta, "dragoman": own}}


async def _go_on(session: Session) -> None:
    """Whoever looks at a session whose process is gone goes on looking: it is ours now, or another process's.

    No agent is started for that; the next prompt does. A process that ends well may take its time to let go.
    """
    for delay in DELAYS:
        with suppress(TimeoutError):
            await asyncio.wait_for(session.gateway.said_goodbye.wait(), delay)
        clients = session.clients_by_preference() or [each.client for each in session.attachments]
        if not clients or session.gateway.closing or session.gateway.sessions.get(session.id) is not session:
            return
        try:
            await takeover.take_over(session, clients[0])
        except RpcError as error:
            log.info("session cannot be taken over yet: %s", error.message, extra={"session": session.id})
        else:
            return
    log.warning("session was not taken over; the next prompt tries again", extra={"session": session.id})
