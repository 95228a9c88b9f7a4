"""Parks idle sessions: the agent's process is ended, and restarted with the next prompt."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from dragoman.gateway.json_types import encode
from dragoman.gateway.ports.store import SessionChanges
from dragoman.wire.errors import internal

if TYPE_CHECKING:
    from dragoman.gateway.registry import Registry
    from dragoman.gateway.session.session import Session

log = logging.getLogger(__name__)

CLOSE_PATIENCE = 5.0
"""Seconds for a shared agent to answer `session/close`; nothing waits for it."""
ROUNDING = 0.001
"""Seconds that a timer may be early: a wait for what rounding leaves would begin again and again."""


class Parking:
    def __init__(self, gateway: Registry) -> None:
        self._gateway = gateway
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._since: dict[str, float] = {}
        """When each session last became idle, by the monotonic clock."""

    def idle(self, session: Session) -> None:
        """The session is idle: start its timer; one that runs already waits for the rest of the time when it is due."""
        self._since[session.id] = time.monotonic()
        if session.id not in self._timers:
            self._wait(session, self._gateway.config.sessions.park_after)

    def _wait(self, session: Session, seconds: float) -> None:
        if seconds and session.journal is not None:
            loop = asyncio.get_running_loop()
            self._timers[session.id] = loop.call_later(seconds, self._due, session)

    def _due(self, session: Session) -> None:
        self._timers.pop(session.id, None)
        waited = time.monotonic() - self._since[session.id]
        left = self._gateway.config.sessions.park_after - waited
        if left > ROUNDING:
            self._wait(session, left)
        else:
            del self._since[session.id]
            self._park(session)

    def forget(self, session: Session) -> None:
        self._since.pop(session.id, None)
        timer = self._timers.pop(session.id, None)
        if timer is not None:
            timer.cancel()

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _park(self, session: Session) -> None:
        agent = session.agent
        if session.turn is not None or len(session.questions) or session.attaching:
            return
        if agent is None and not session.attachments:
            self._gateway.spawn(self._gateway.unload(session))  # the agent died, and no client is attached
        if agent is None or not _may_park(session):
            return
        log.info("session parked", extra={"session": session.id, "agent": session.agent_name})
        session.binding.park(internal("The session is parked", "parked"))
        session.record("parked")
        session.entry.save(SessionChanges(state="parked"))
        session.changed()
        session.services.release_terminals()
        self._gateway.spawn(session.services.close())
        if agent.sessions and agent.capabilities.session("close"):
            # The agent goes on for other sessions, and may have a process for each, as Claude Code does.
            params = encode({"sessionId": session.agent_session_id})
            self._gateway.spawn(agent.ask("session/close", params, CLOSE_PATIENCE))
        self._gateway.pool.reap(agent)
        if not session.attachments:
            self._gateway.spawn(self._gateway.unload(session))


def _may_park(session: Session) -> bool:
    """Whether the agent can load or resume the session later; with `park = "always"` a recap is enough.

    An agent in a sandbox whose home is removed with the process claims to resume, but has nothing to resume from.
    """
    agent = session.agent
    setting = session.agent_config.park
    if agent is None or setting == "never":
        return False
    if setting == "always":
        return True
    remembers = agent.box is None or agent.box.remembers
    return remembers and (agent.capabilities.load or agent.capabilities.session("resume"))
