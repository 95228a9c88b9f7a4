"""The process of ours that has a session, spoken to as if it were the session's agent.

It knows that this process has clients of its own, so it says more than an agent does: where the replay begins and ends
that one of them asked for, and what they said themselves, marked, so that the others here see it in its place in the
order and whoever said it does not.
"""

from __future__ import annotations

from dragoman.gateway.agent import AgentConnection
from dragoman.gateway.feed import REPLAY, REPLAYED, DirectFeed
from dragoman.gateway.replay import OWN, without_own
from dragoman.gateway.rewrite import session_of
from dragoman.gateway.updates import read_head


class OwnerConnection(AgentConnection):
    is_owner = True

    def _intercept(self, line: bytes) -> bool:
        if not line.endswith(OWN):
            return super()._intercept(line)
        head = read_head(line)
        session = self.sessions.get(head.params.sessionId) if head is not None else None
        if head is None or session is None:
            return False
        session.own_update(head.params.update.sessionUpdate, without_own(line))
        return True

    def peer_notification(self, method: str, params: bytes) -> None:
        if method not in (REPLAY, REPLAYED):
            super().peer_notification(method, params)
            return
        session = self.sessions.get(session_of(params) or "")
        if session is not None and isinstance(session.feed, DirectFeed):
            session.feed.replay_begins() if method == REPLAY else session.feed.replay_ended()
