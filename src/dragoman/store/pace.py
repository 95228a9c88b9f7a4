"""When many sessions stream at once, commits share what they write: a commit costs pages of its own, whatever is in it.

one session, or a few        each commit at once
a crowd                      a commit per `CROWD_PAUSE`, of everything that came meanwhile
"""

from __future__ import annotations

from collections import deque

from dragoman.store.limits import CROWD_COMMITS, CROWD_PAUSE, CROWD_SESSIONS


class Pace:
    def __init__(self) -> None:
        self._recent: deque[tuple[float, str]] = deque(maxlen=CROWD_COMMITS)

    def wait(self, session_id: str, now: float) -> float:
        """Seconds until the next commit, which begins with an event of this session."""
        left = max(0.0, CROWD_PAUSE - (now - self._recent[-1][0])) if self._crowded(now) else 0.0
        self._recent.append((now + left, session_id))
        return left

    def _crowded(self, now: float) -> bool:
        recent = self._recent
        if len(recent) < CROWD_COMMITS or now - recent[0][0] > CROWD_COMMITS * CROWD_PAUSE:
            return False
        return len({session_id for _, session_id in recent}) >= CROWD_SESSIONS
