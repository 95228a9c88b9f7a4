"""What answers for a session: an agent of this process, the process that owns the session, or nothing at present."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman.gateway.session.states import IllegalTransition, SessionEvent, SessionState, session_life
from dragoman.wire.errors import RpcError, session_not_found

if TYPE_CHECKING:
    from dragoman.gateway.agent import AgentConnection


class ClosedMeanwhile(RpcError):
    """The session was closed while a request for it was under way; a retry may find it again."""

    @classmethod
    def of(cls, session_id: str) -> ClosedMeanwhile:
        error = session_not_found(session_id, "It was closed meanwhile")
        return cls(error.code, error.message, error.data)


class Binding:
    def __init__(
        self,
        session_id: str,
        on_illegal: Callable[[IllegalTransition], None],
        on_release: Callable[[AgentConnection], None],
    ) -> None:
        """`on_release` is called with each agent that does not answer for the session any more."""
        self._session_id = session_id
        self._on_release = on_release
        self._life = session_life(session_id, on_illegal)
        self.agent: AgentConnection | None = None
        self.agent_session_id = ""
        """The agent's own id of the session; empty if it has none that can be loaded."""
        self._gone: RpcError | None = None
        """Why there is no agent any more."""
        self._paused: dict[str, AgentConnection] = {}
        """Agents that wait for the journal, by the reason."""

    def know(self, agent_session_id: str) -> None:
        """Set the agent's id of the session before an agent is bound."""
        self.agent_session_id = agent_session_id

    def bind(self, agent: AgentConnection, agent_session_id: str) -> None:
        self._life.send(SessionEvent.FOLLOWED if agent.is_owner else SessionEvent.BOUND)
        self.agent = agent
        self.agent_session_id = agent_session_id
        self._gone = None

    def lose(self, reason: RpcError | None = None) -> None:
        """No agent answers for the session any more; `reason` is the error for requests that need one."""
        self._release(SessionEvent.LOST, reason)

    def park(self, reason: RpcError | None = None) -> None:
        """The session goes on without an agent, on purpose."""
        self._release(SessionEvent.PARKED, reason)

    def _release(self, event: SessionEvent, reason: RpcError | None) -> None:
        self._life.send(event)
        agent, self.agent = self.agent, None
        self._gone = reason or self._gone
        if agent is not None:
            agent.sessions.pop(self.agent_session_id, None)
            self._on_release(agent)

    def held_elsewhere(self) -> None:
        """Another process owns it: `bind` with a connection to that process comes next."""
        self._life.send(SessionEvent.HELD)
        self.agent_session_id = self._session_id

    def close(self) -> None:
        """The session leaves the memory of this process."""
        self._life.send(SessionEvent.CLOSED)

    def taken(self) -> None:
        """This process holds the lease."""
        self._life.send(SessionEvent.TAKEN)

    @property
    def closed(self) -> bool:
        return self._life.state is SessionState.CLOSED

    def check_open(self) -> None:
        """Raise if the session was closed meanwhile."""
        if self.closed:
            raise ClosedMeanwhile.of(self._session_id)

    @property
    def parked(self) -> bool:
        return self._life.state is SessionState.PARKED

    @property
    def owned_elsewhere(self) -> bool:
        """Another process owns it, or owned it until it ended."""
        return self._life.state in (SessionState.FOLLOWING, SessionState.ORPHANED)

    @property
    def orphaned(self) -> bool:
        """The process that owned it is gone, or not reached yet."""
        return self._life.state is SessionState.ORPHANED

    @property
    def follows(self) -> bool:
        """The session is mirrored from its owner, which also sends back what clients here do, in order."""
        return self.agent is not None and self.agent.is_owner

    def require(self) -> AgentConnection:
        if self.agent is None:
            raise self._gone or session_not_found(self._session_id)
        return self.agent

    def pause(self, why: str, pause: bool) -> None:
        """Pause the agent, or release the one that was paused for the same reason, even if it was replaced since."""
        holder = (self._session_id, why)
        former = self._paused.pop(why, None)
        if former is not None:
            former.release(holder)
        if pause and self.agent is not None:
            self._paused[why] = self.agent
            self.agent.hold(holder)
