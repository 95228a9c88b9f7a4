"""One prompt until its stop reason: every prompt is answered exactly once (G-090 to G-095).

    waiting ──agent answers──────────────► settled
       │ cancel                               ▲ ▲
       ▼                                      │ │
    cancelling ──agent answers────────────────┘ │
       └──────── silent for cancel_timeout ─────┘   the agent is given up

Whatever settles a turn first wins; what comes later is ignored.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from dragoman.gateway import dialects
from dragoman.gateway.json_types import decode_object, encode
from dragoman.rpc.peer import Reply, Request
from dragoman.wire.errors import Malformed, RpcError, internal

if TYPE_CHECKING:
    from dragoman.gateway.client import ClientConnection
    from dragoman.gateway.session import Session

log = logging.getLogger(__name__)

CANCELLED = Reply(result=b'{"stopReason":"cancelled"}')


class Turn:
    def __init__(self, session: Session, client: ClientConnection, request: Request) -> None:
        self.session = session
        self.client = client
        self.request = request
        self.call: int | None = None
        self.cancelling = False
        self.settled = False
        self.done = asyncio.Event()
        """Set when the answer is on its way to the client."""
        self._timer: asyncio.TimerHandle | None = None

    def start(self, params: bytes) -> None:
        agent = self.session.require_agent()
        self.call = agent.peer.request("session/prompt", params, self._answered)
        self.request.on_cancel = self._cancel_requested

    def cancel(self, timeout: float) -> None:
        """Tell the agent at once, answer its open questions, and wait no longer than `timeout` (G-091, G-093)."""
        if self.settled:
            return
        agent = self.session.agent
        if agent is not None:
            agent.peer.notify("session/cancel", encode({"sessionId": self.session.agent_session_id}))
        self.session.questions.cancel_all("cancel")
        if not self.cancelling:
            self.cancelling = True
            self._timer = asyncio.get_running_loop().call_later(timeout, self._give_up, timeout)

    def settle(self, reply: Reply) -> None:
        if self.settled:
            return
        self.settled = True
        if self._timer is not None:
            self._timer.cancel()
        self.session.turn_ended(self, reply)
        self.done.set()

    def fail(self, error: RpcError) -> None:
        """The agent is gone; after a cancel that is what the user wanted (G-110)."""
        self.settle(CANCELLED if self.cancelling else Reply.failed(error))

    def _answered(self, reply: Reply) -> None:
        if self.settled:
            self.session.late_answer()
            return
        if reply.ok:
            self.settle(_read_result(reply))
        elif self.cancelling:
            self.settle(CANCELLED)  # the abort must not surface as an error (G-092)
        else:
            self.settle(self.session.reply_for_client(reply))

    def _cancel_requested(self) -> None:
        """`$/cancel_request` for a prompt: passed on, and said in the words that every agent knows (G-095)."""
        agent = self.session.agent
        if agent is not None and self.call is not None:
            agent.peer.cancel(self.call)
        self.session.cancel()

    def _give_up(self, timeout: float) -> None:
        log.warning("agent is silent %g s after cancel", timeout, extra={"session": self.session.id})
        self.settle(CANCELLED)
        self.session.give_up_agent()


def _read_result(reply: Reply) -> Reply:
    try:
        result = decode_object(reply.result)
    except Malformed:
        return Reply.failed(internal("The agent answered the prompt with something that is not an object"))
    if result.get("stopReason") == "error":  # seeds 000 and 002; not a v1 stop reason (D-50)
        return Reply.failed(internal("The agent ended the turn with an error", "agent_error", result=result))
    changed = dialects.read_stop_reason(result)
    return reply if changed is None else Reply(result=encode(changed))
