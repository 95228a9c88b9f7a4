"""A client as its sessions and agents see it; `ClientConnection` handles its requests."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec import Raw

from dragoman.gateway.access.capabilities import ClientCapabilities
from dragoman.gateway.access.identity import LOCAL, Identity
from dragoman.gateway.access.rate_limit import RateLimit
from dragoman.gateway.delivery.backpressure import Backpressure
from dragoman.gateway.json_types import decode_object, encode
from dragoman.gateway.ports.store import LIST_PAGE
from dragoman.gateway.ports.worktrees import WorktreeWish
from dragoman.gateway.session.questions.question import ELICITATION
from dragoman.rpc.peer import Peer
from dragoman.rpc.request import Request
from dragoman.wire import limits, message
from dragoman.wire.errors import invalid_params

if TYPE_CHECKING:
    from dragoman.gateway.agent import AgentConnection
    from dragoman.gateway.delivery.attachment import Attachment

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a client's connection, set by its transport."""

    agent: str | None = None
    """The agent of all its sessions."""
    token: str | None = None
    """The required value of `_meta.dragoman.token` in `initialize`."""
    refusal: str | None = None
    """Why the client is refused, whatever token it sends."""
    repeat_initialize: bool = True
    """stdio answers a second `initialize` as the first, network transports refuse it (G-030)."""
    keep_sessions: bool = False
    """Its sessions and turns go on when it leaves."""
    leave_turns: bool = False
    """Its turns in sessions that another process owns go on when it leaves."""
    start_ahead: bool = True
    """Get the agent's capabilities at `initialize`, if needed by starting it."""
    spare: bool = True
    """Use that agent for the first session: right for one editor, not for a thousand clients at a port."""
    restart_on_load: bool = True
    """Restart the agent of a session as soon as it is loaded, not only when it is needed."""
    beside: bool = False
    """The client and its terminals run on this machine: stdio."""
    local_process: bool = False
    """The client is another process of Dragoman: it may also close sessions that it is not attached to."""
    unattached: bool = False
    """It may use sessions that it is not attached to."""
    own_queue: bool = False
    """Its prompts waited elsewhere, and come when it is their turn: pages."""
    revoked: Callable[[], str | None] | None = None
    """Why its token is no longer valid; None while it is. Not needed by clients that are only disconnected then."""
    lapsed: Callable[[], str | None] | None = None
    """The same, asked only when a prompt of it starts that waited: the client may have been disconnected meanwhile."""
    initialized: Callable[[], None] | None = None
    """Called when `initialize` is answered: for work that must not delay the answer."""
    list_limit: int = LIST_PAGE
    """Sessions in one page of `session/list`."""
    identity: Identity = LOCAL
    """The identity of its token, which decides what it may do."""
    worktree: WorktreeWish | None = None
    """The worktree that each of its new sessions gets."""
    rate_limit: RateLimit | None = None
    """Counts its requests if its transport does not."""


class Client:
    def __init__(self, key: int, terms: Terms, peer: Peer) -> None:
        self.key = key
        self.terms = terms
        self.peer = peer
        self.bound_agent = terms.agent
        self.may_control = terms.identity.may_control
        """False for observers and approvers: no agent is started or ended for them, and they serve no files."""
        self.may_answer = terms.identity.may_answer
        """False for observers: they get no questions."""
        self.restarts_agents = terms.restart_on_load and self.may_control
        self.capabilities = ClientCapabilities({})
        self.info: object = None
        self.attachments: dict[str, Attachment] = {}
        self.writable = True
        """The client reads what it is sent."""
        self._backpressure = Backpressure(self)

    @property
    def shows_terminals(self) -> bool:
        """Whether commands that an agent runs by itself are shown in this client's terminals."""
        can = self.capabilities
        return self.terms.beside and can.terminal and not can.draws_terminals and self.may_control

    @property
    def leaves_turns(self) -> bool:
        """Whether its turns in sessions that another process owns go on when it leaves."""
        return self.terms.leave_turns or self.capabilities.leave_turns

    @property
    def backlog(self) -> int:
        """Bytes that the client has not read yet; 0 before its link is open."""
        link = getattr(self.peer, "link", None)
        return link.backlog if link is not None else 0

    def peer_writable(self, writable: bool) -> None:
        """Apply back-pressure: a client that reads slowly pauses its agents, with a journal only briefly (G-086)."""
        self.writable = writable
        self._backpressure.writable_changed(writable)

    def release(self, agent: AgentConnection) -> None:
        """Stop pausing the agent because this client is slow: a session of the client does not use it any more.

        If another session of the client uses the agent, it stays paused.
        """
        if not self.writable:
            agent.release(self)
            self.peer_writable(False)

    async def agent_started(self, agent: AgentConnection) -> None:
        """Called with each agent that is started for this client."""

    # -- from an agent, about no session

    def agent_request(self, agent: AgentConnection, request: Request) -> None:
        params = request.params
        if request.method == ELICITATION:
            params = self._elicitation(agent, params)
        call = self.peer.request(request.method, params, request.answer)
        request.on_cancel = lambda: self.peer.cancel(call)

    def agent_notification(self, agent: AgentConnection, method: str, params: bytes) -> None:
        """Forward a notification; dropped for a client that does not read, since it is in no journal."""
        if self.backlog > limits.CLIENT_BACKLOG_BYTES:
            log.info(
                "notification for a client that does not read, dropped",
                extra={"client": self.key, "method": method},
            )
        else:
            self.peer.notify(method, params)

    def _elicitation(self, agent: AgentConnection, params: bytes) -> bytes:
        """Replace the agent's id of the request that an elicitation is about by the client's id (G-065)."""
        asked = decode_object(params)
        if not self.capabilities.elicitation(str(asked.get("mode"))):
            raise invalid_params(f"The client does not offer elicitation mode {asked.get('mode')!r}")
        shown = asked.get("elicitationId")
        if isinstance(shown, str):
            agent.elicitations[shown] = self
        call = asked.get("requestId")
        origin = agent.origins.get(call) if isinstance(call, int) else None
        if origin is None:
            return params
        return encode({**message.members(params), "requestId": Raw(origin)})
