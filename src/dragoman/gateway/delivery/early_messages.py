"""Messages of an agent about a session before the agent has answered `session/new` (G-044, G-082).

They are held until the client knows the session. At the limit the agent cannot be paused, because its answer is still
to come on the same pipe: an update is dropped and later reported to the clients, a request is refused.
"""

from __future__ import annotations

from dragoman.wire import limits


class EarlyMessages:
    def __init__(self) -> None:
        self.dropped = 0
        """Number of updates dropped at the limit."""
        self._held: dict[str, list[bytes]] = {}
        self._count = 0
        self._bytes = 0

    def hold(self, agent_session_id: str, line: bytes) -> bool:
        """Hold a line; False if there is no room for it."""
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

    def forget(self, except_for: str | None) -> list[bytes]:
        """Drop the lines of all other sessions and return them: no other session is being created."""
        others = [each for each in self._held if each != except_for]
        return [line for agent_session_id in others for line in self.take(agent_session_id)]
