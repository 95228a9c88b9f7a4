"""Detects and reports an agent that sends nothing in the middle of a turn (quirk silent_retries).

Nothing is done per message, and little per turn: a session has one timer, which stays when a turn ends. If the timer
fires too early for the next turn, it is set again for the rest of the time.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.gateway.session.session import Session


class SilenceWatch:
    """Checks, while a turn runs, whether anything was published since the last check."""

    def __init__(self, session: Session) -> None:
        self.silent = False
        """The agent has published nothing for `sessions.silent_after` seconds of this turn."""
        self._session = session
        self._timer: asyncio.TimerHandle | None = None
        self._published = 0
        """Number of published events at the last check."""
        self._due = 0.0
        """Time of the next check, by the monotonic clock."""

    def turn_begins(self) -> None:
        seconds, journal = self._session.gateway.config.sessions.silent_after, self._session.journal
        self.silent = False
        if not seconds or journal is None:
            return
        self._published = journal.published
        self._due = time.monotonic() + seconds
        if self._timer is None:
            self._wait(seconds)

    def turn_ends(self) -> None:
        self.silent = False

    def stop(self) -> None:
        """Cancel the timer: the session is unloaded."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        session = self._session
        self._timer, journal = None, session.journal
        if session.turn is None or session.turn.call is None:
            return  # no prompt is at the agent; the next turn starts the timer again
        seconds = session.gateway.config.sessions.silent_after
        early = self._due - time.monotonic()
        if early > 0 or journal is None:
            self._wait(max(early, 0.0) or seconds)
            return
        quiet = journal.published == self._published and not len(session.questions)
        if quiet and not self.silent:
            meta = {"dragoman": {"state": "silent", "seconds": seconds}}
            session.publish({"sessionUpdate": "session_info_update", "_meta": meta})
        self.silent = quiet
        self._published = journal.published
        self._due = time.monotonic() + seconds
        self._wait(seconds)
