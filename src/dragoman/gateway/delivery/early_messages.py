"""What an agent says about a session before it has answered `session/new` (G-044, G-082).

It is held and handed over once the client knows the session. At the bound the agent cannot be held back, because its
answer is still to come on the same pipe: an update is dropped, which people are told, and a request is refused.
"""

from __future__ import annotations

from dragoman.wire import limits


class EarlyMessages:
    def __init__(self) -> None:
        self.dropped = 0
        """Updates that there was no room for."""
        self._held: dict[str, list[bytes]] = {}
        self._count = 0
        self._bytes = 0

    def hold(self, agent_session_id: str, line: bytes) -> bool:
        """False if there is no room for it."""
        size = len(agent_session_id) + len(line)
        if self._count >= limits.EARLY_UPDATES or self._bytes + size > limits.EARLY_BYTES:
            return False
        self._held.setdefault(agent_session_id, []).append(line)
        self._count += 1
        self._bytes += size
        return True

    def take(self, agent_session_id: str) -> list[bytes]:
        lines = self._held.pop(agent_session_id, [])
        self._count -= len(lines)
        self._bytes -= sum(map(len, lines)) + len(lines) * len(agent_session_id)
        return lines

    def forget(self, except_for: str | None) -> None:
        """No other session is about to come."""
        for agent_session_id in [each for each in self._held if each != except_for]:
            self.take(agent_session_id)
