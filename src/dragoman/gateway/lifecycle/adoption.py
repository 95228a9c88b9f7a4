"""Adoption: the first load of a session that only its agent knows journals the agent's own replay.

One load does it; other clients that load meanwhile, in this process or through another, wait for it and then read the
journal. If it fails, the next waiting client tries again; it is cancelled when no client waits any more.

Nothing of a replay is journaled before the agent has answered, and then all of it at once: a load that fails or is cut
off leaves nothing in the journal that the next load would take for the whole conversation, or journal a second time.
Only a replay that is too large for memory is journaled as it comes, and marked as partial until it is complete.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from dragoman.gateway.json_types import encode
from dragoman.gateway.rewriting.rewrite import reply_for_client
from dragoman.gateway.session.recovery import SharedLoad
from dragoman.rpc.request import Reply
from dragoman.wire import limits
from dragoman.wire.errors import RpcError

if TYPE_CHECKING:
    from dragoman.gateway.agent import AgentConnection
    from dragoman.gateway.client import ClientConnection
    from dragoman.gateway.delivery.journal_feed import JournalFeed
    from dragoman.gateway.session.session import Session

log = logging.getLogger(__name__)

LOOK_INTERVAL = 0.1
"""Seconds between checks of how much of a replay is held in memory."""
PARTIAL = "The beginning of this conversation is not complete: the agent was cut off while it told it."


async def adopt(session: Session, client: ClientConnection, journal: JournalFeed) -> int | None:
    """Journal the agent's own replay, if only the agent knows the session.

    Returns the number of the last event of the history; None if nothing of it can be stored.
    """
    while client.may_control and (session.recovery.adoption is not None or _needed(session, journal)):
        if journal.broken and session.recovery.adoption is None:
            return None
        adoption = session.recovery.adoption or Adoption(session, client, journal)
        try:
            return await adoption.wait(client)
        except RpcError:
            if adoption.task.cancelled():
                session.binding.check_open()
            if adoption.client is client:
                raise
            session.binding.check_open()
    return journal.delivered


def _needed(session: Session, journal: JournalFeed) -> bool:
    return not journal.seq and session.agent is None and bool(session.agent_session_id)


class Adoption(SharedLoad):
    """Its result is the number of the last event of the history; None if that was not stored."""

    def __init__(self, session: Session, client: ClientConnection, journal: JournalFeed) -> None:
        super().__init__(client, client.gateway.spawn(self._run()))
        self._gateway = client.gateway
        self._session = session
        self._journal = journal
        self._end = 0
        self._timer: asyncio.TimerHandle | None = None
        session.recovery.adopt(self)

    async def _run(self) -> int | None:
        with self._gateway.places.wake(self.client, self._session):
            return await self._journal_replay()

    async def _journal_replay(self) -> int | None:
        session = self._session
        agent = await self._gateway.pool.take_for(session, self.client)
        if not agent.capabilities.load:  # the agent is restarted by other means, without its history
            self._gateway.pool.reap(agent)
            return self._journal.delivered
        try:
            await self._load(agent)
        except BaseException:
            await self._give_up(agent)
            raise
        await session.wait_settled()
        if self._journal.broken and not self._journal.delivered:
            return None
        return min(self._end, self._journal.delivered)

    async def _load(self, agent: AgentConnection) -> None:
        session = self._session
        servers = await session.setup.servers_for(self._gateway, agent, session.cwd)
        session.binding.check_open()
        session.bind(agent, session.agent_session_id)
        self._journal.hold()
        self._look()
        params = {"sessionId": session.agent_session_id, "cwd": session.cwd, "mcpServers": servers}
        patience = session.gateway.config.limits.session_timeout
        reply = await agent.call("session/load", encode(params), heard=self._heard, patience=patience)
        if not reply.ok:
            raise reply_for_client(reply, session.agent_session_id, session.id).as_error()
        session.options.take_result(reply)

    def _heard(self, reply: Reply) -> None:
        """Note the end of the history: what the agent sends after its answer does not belong to it."""
        if reply.ok:
            self._end = self._journal.seq
            self._let_go()
            if self._session.entry.partial:
                self._session.entry.save_extra(partial=False)

    def _look(self) -> None:
        if self._journal.held_bytes <= limits.HELD_REPLAY_BYTES:
            self._timer = asyncio.get_running_loop().call_later(LOOK_INTERVAL, self._look)
            return
        log.info("replay is too large to be held", extra={"session": self._session.id})
        self._session.entry.save_extra(partial=True)
        self._let_go()

    def _let_go(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._journal.let_go()

    async def _give_up(self, agent: AgentConnection) -> None:
        """Undo a failed adoption: end its agent, and close the session unless other clients use it."""
        session = self._session
        if self._timer is not None:
            self._timer.cancel()
        self._journal.drop_held()
        if session.agent is agent:
            session.unbind()
        self._gateway.pool.reap(agent)
        session.recovery.end_adoption(self)
        others = session.attaching - self.waiting[self.client]
        if not session.attachments and not others:
            await self._gateway.close_session(session)
