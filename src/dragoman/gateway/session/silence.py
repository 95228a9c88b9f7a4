"""Detects and reports an agent that sends nothing in the middle of a turn (quirk silent_retries).

Nothing is done per message, and little per turn: a session has one timer, which stays when a turn ends. If the timer
fires too early for the next turn, it is set again for the rest of the time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from dragoman.gateway.session.stream import Stream


class SilenceWatch:
    """Checks, while a turn runs, whether anything was published since the last check."""

    def __init__(
        self,
        stream: Stream,
        seconds: float,
        prompt_runs: Callable[[], bool],
        open_questions: Callable[[], int],
    ) -> None:
        """`prompt_runs`: whether a prompt is at the agent; `open_questions`: how many of its questions are open."""
        self.silent = False
        """The agent has published nothing for `sessions.silent_after` seconds of this turn."""
        self._stream = stream
        self._seconds = seconds
        self._prompt_runs = prompt_runs
        self._open_questions = open_questions
        self._timer: asyncio.TimerHandle | None = None
        self._published = 0
        """Number of published events at the last check."""
        self._due = 0.0
        """Time of the next check, by the monotonic clock."""

    def turn_begins(self) -> None:
        seconds, journal = self._seconds, self._stream.journal
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
        self._timer, journal, seconds = None, self._stream.journal, self._seconds
        if not self._prompt_runs():
            return  # no prompt is at the agent; the next turn starts the timer again
        early = self._due - time.monotonic()
        if early > 0 or journal is None:
            self._wait(max(early, 0.0) or seconds)
            return
        quiet = journal.published == self._published and not self._open_questions()
        if quiet and not self.silent:
            meta = {"dragoman": {"state": "silent", "seconds": seconds}}
            self._stream.publish({"sessionUpdate": "session_info_update", "_meta": meta})
        self.silent = quiet
        self._published = journal.published
        self._due = time.monotonic() + seconds
        self._wait(seconds)
