"""The gateway client of our own commands, connected to a gateway in this process or behind a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from dragoman.gateway.access.client import Terms
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.gateway_client import GatewayClient
from dragoman.gateway.json_types import JsonObject, as_object, decode_object, encode, own_meta
from dragoman.gateway.session.policy.verdict import choose_option
from dragoman.rpc.request import Request
from dragoman.transports.dial import UnixDialer
from dragoman.wire.errors import RpcError, internal, method_not_found

PERMISSION = "session/request_permission"
LEAVE_TIMEOUT = 15.0
"""Seconds for this client's turns, agents and requests to end; each has its own shorter limit."""
# Neither files nor terminals: an agent that a command runs uses its own.
CAPABILITIES: JsonObject = {
    "fs": {"readTextFile": False, "writeTextFile": False},
    "terminal": False,
    "session": {"notices": {}},
    "_meta": {"dragoman": {"turnEnds": True, "remembering": True}},
}


class Question:
    """A permission request of the agent; only the first answer counts."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self.params = decode_object(request.params)
        self.tool = as_object(self.params.get("toolCall"))
        offered = self.params.get("options")
        self.options = [as_object(option) for option in offered] if isinstance(offered, list) else []
        self.on_withdrawn: Callable[[], None] | None = None
        self.allowed = True
        """Whether this command's answer allowed it; another client may have answered first."""
        request.on_cancel = self._withdraw

    @property
    def open(self) -> bool:
        return not self._request.answered

    @property
    def remember(self) -> JsonObject:
        """What could be remembered; empty if it is answered once only."""
        return as_object(as_object(own_meta(self.params).get("policy")).get("remember"))

    def choose(
        self, option_id: str | None, rule: str | None = None, remember: JsonObject | None = None
    ) -> None:
        """Answer with an offered option; None answers `cancelled`. `rule` decided, if it was not the user."""
        outcome = (
            {"outcome": "selected", "optionId": option_id}
            if option_id is not None
            else {"outcome": "cancelled"}
        )
        own = {"rule": rule, "remember": remember}
        told = {name: value for name, value in own.items() if value is not None}
        meta = {"_meta": {"dragoman": told}} if told else {}
        self._request.reply(encode({"outcome": outcome, **meta}))

    def refuse(self, rule: str | None = None) -> None:
        self.choose(choose_option("deny", self.options), rule)

    def _withdraw(self) -> None:
        """Another client answered, or the turn is over."""
        self._request.fail(RpcError(-32800, "Request cancelled"))
        if self.on_withdrawn is not None:
            self.on_withdrawn()


class Conversation(GatewayClient):
    """The gateway client of a command."""

    def __init__(self, on_line: Callable[[bytes], None] | None = None) -> None:
        """`on_line` gets every message that arrives, as it is on the wire."""
        self._on_line = on_line
        super().__init__(self._pass_line if on_line is not None else None)
        self.on_update: Callable[[JsonObject], None] = lambda update: None
        self.on_question: Callable[[Question], None] = Question.refuse
        self.closed = asyncio.Event()

    # -- connecting

    @classmethod
    async def inside(
        cls, running: Gateway, terms: Terms, on_line: Callable[[bytes], None] | None = None
    ) -> Conversation:
        """Connect to the gateway in this process."""
        conversation = cls(on_line)
        conversation.connect(running, terms)
        await conversation._begin()
        return conversation

    @classmethod
    async def with_owner(cls, address: str, max_bytes: int) -> Conversation:
        """Connect to the owner of a session; raises `AgentUnavailable` if it cannot be reached."""
        conversation = cls()
        await UnixDialer(max_bytes).dial(address, conversation.peer)
        await conversation._begin()
        return conversation

    async def _begin(self) -> None:
        reply = await self.initialize(CAPABILITIES, "dragoman-cli", "Dragoman")
        if not reply.ok:
            raise reply.as_error()

    # -- requests

    async def prompt(self, session_id: str, text: str, content: Sequence[JsonObject] = ()) -> JsonObject:
        """Send a text, or `content` in its place."""
        prompt = list(content) or [{"type": "text", "text": text}]
        return await self.result("session/prompt", {"sessionId": session_id, "prompt": prompt})

    def cancel(self, session_id: str) -> None:
        self.peer.notify("session/cancel", encode({"sessionId": session_id}))

    def hang_up(self) -> None:
        self.peer.link.close()

    async def disconnect(self) -> None:
        """Disconnect, and wait until the gateway in this process has ended this client's work."""
        self.hang_up()
        try:
            await asyncio.wait_for(self.client.left.wait(), LEAVE_TIMEOUT)
        except TimeoutError:
            pass  # the gateway ends it when it closes

    # -- Receiver

    def peer_request(self, request: Request) -> None:
        if request.method != PERMISSION:
            raise method_not_found(request.method)
        self.on_question(Question(request))

    def peer_notification(self, method: str, params: bytes) -> None:
        if method == "session/update":
            self.on_update(as_object(decode_object(params).get("update")))

    def peer_closed(self, reason: str | None) -> RpcError:
        self.closed.set()
        return internal("The process that owns the session has ended", "connection_closed")

    def _pass_line(self, line: bytes) -> bool:
        assert self._on_line is not None
        self._on_line(line)
        return False


def text_of(content: object) -> str:
    """A content block as text for a terminal."""
    block = as_object(content)
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    if kind == "resource_link":
        return f"[{block.get('name') or block.get('uri')}]"
    if kind == "resource":
        return f"[{as_object(block.get('resource')).get('uri')}]"
    return f"[{kind}]" if kind else ""


def chunk_text(update: JsonObject) -> str:
    """The text of a chunk for a terminal; a chunk that is only a Markdown fence is left out."""
    return "" if own_meta(update).get("fence") is True else text_of(update.get("content"))
