"""An agent that is one function: `async def answer(prompt: str, turn: Turn)`.

The function returns the answer, yields it piece by piece, or sends it with `turn.say` and returns None.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from dragoman import __version__
from dragoman.builtin.client import Client, Json
from dragoman.rpc.peer import Peer
from dragoman.rpc.request import Request
from dragoman.transports.stdio import StdioLink
from dragoman.wire import limits
from dragoman.wire.errors import (
    Malformed,
    RpcError,
    internal,
    invalid_params,
    invalid_request,
    method_not_found,
    session_not_found,
)

__all__ = ["Turn"]

log = logging.getLogger(__name__)

Function = Callable[..., Awaitable[str | None] | AsyncIterator[str]]


@dataclass
class Turn:
    """One prompt and its session, as passed to the agent's function."""

    session: str
    cwd: str
    blocks: Sequence[Json]
    """The content blocks of the prompt, with images and links."""
    state: dict[str, Any]
    """For the function's own data; lives as long as the session."""
    client: Client = field(repr=False)

    async def say(self, text: str) -> None:
        await self.update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})

    async def think(self, text: str) -> None:
        await self.update({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": text}})

    async def update(self, update: Json) -> None:
        """Send any `session/update`; waits while the client reads slowly."""
        self.client.update(self.session, update)
        await self.client.wait_writable()

    async def allowed(self, title: str, kind: str = "other") -> bool:
        """Ask the user for permission; returns whether it was given."""
        call = {
            "toolCallId": f"call_{secrets.token_hex(6)}",
            "title": title,
            "kind": kind,
            "status": "pending",
        }
        options = [
            {"optionId": "allow", "name": "Allow", "kind": "allow_once"},
            {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
        ]
        await self.update({"sessionUpdate": "tool_call", **call})
        chosen = await self.client.ask(self.session, call, options) == "allow"
        status = "completed" if chosen else "failed"
        await self.update(
            {"sessionUpdate": "tool_call_update", "toolCallId": call["toolCallId"], "status": status}
        )
        return chosen


@dataclass
class _Session:
    cwd: str
    state: dict[str, Any] = field(default_factory=dict)
    turn: asyncio.Task[None] | None = None


class PlainAgent:
    """`Receiver` that hands prompts to the function."""

    def __init__(self, function: Function) -> None:
        self.peer = Peer("The client", self)
        self.client = Client(self.peer)
        self.left = asyncio.Event()
        self._function = function
        self._takes_turn = len(inspect.signature(function).parameters) > 1
        self._sessions: dict[str, _Session] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def peer_request(self, request: Request) -> None:
        params = msgspec.json.decode(request.params)
        if not isinstance(params, dict):
            raise invalid_params("params must be an object")
        if request.method == "session/prompt":
            task = asyncio.ensure_future(self._prompt(request, params))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        answers: dict[str, Callable[[Json], Json]] = {
            "initialize": self._initialize,
            "authenticate": lambda params: {},
            "session/new": self._new,
            "session/close": self._close,
            "session/cancel": self._cancel,
        }
        if request.method not in answers:
            raise method_not_found(request.method)
        request.reply(msgspec.json.encode(answers[request.method](params)))

    def peer_notification(self, method: str, params: bytes) -> None:
        if method == "session/cancel":
            # Deferred to the next loop iteration, so that a prompt received just before it has begun.
            asyncio.get_running_loop().call_soon(self._cancel, msgspec.json.decode(params))

    def peer_malformed(self, frame: bytes, error: Malformed) -> bool:
        return True

    def peer_writable(self, writable: bool) -> None:
        self.client.set_writable(writable)

    def peer_closed(self, reason: str | None) -> RpcError | None:
        self.client.set_writable(True)
        for task in self._tasks:
            task.cancel()
        self.left.set()
        return None

    def _initialize(self, params: Json) -> Json:
        self.client.capabilities = params.get("clientCapabilities") or {}
        name = getattr(self._function, "__name__", "agent")
        return {
            "protocolVersion": 1,
            "agentCapabilities": {
                "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
                "sessionCapabilities": {"close": {}},
            },
            "agentInfo": {"name": name, "version": __version__},
            "authMethods": [],
        }

    def _new(self, params: Json) -> Json:
        id = f"py_{secrets.token_hex(12)}"
        self._sessions[id] = _Session(str(params.get("cwd")))
        return {"sessionId": id}

    def _close(self, params: Json) -> Json:
        self._cancel(params)
        self._sessions.pop(str(params.get("sessionId")), None)
        return {}

    def _cancel(self, params: Json) -> Json:
        session = self._sessions.get(str(params.get("sessionId")))
        if session is not None and session.turn is not None:
            session.turn.cancel()
        return {}

    async def _prompt(self, request: Request, params: Json) -> None:
        try:
            reason = await self._run(str(params.get("sessionId")), params.get("prompt") or [])
            request.reply(msgspec.json.encode({"stopReason": reason}))
        except RpcError as error:
            request.fail(error)
        except Exception as error:  # user code: its failure is the answer to this prompt
            log.exception("the agent's function failed")
            request.fail(internal(f"The agent failed: {type(error).__name__}: {error}", "agent_failed"))

    async def _run(self, id: str, blocks: list[Json]) -> str:
        session = self._sessions.get(id)
        if session is None:
            raise session_not_found(id)
        if session.turn is not None and not session.turn.done():
            raise invalid_request("A prompt of this session is still being answered", "turn_in_progress")
        turn = Turn(id, session.cwd, blocks, session.state, self.client)
        session.turn = asyncio.ensure_future(self._answer(turn))
        try:
            await session.turn
        except asyncio.CancelledError:
            return "cancelled"
        return "end_turn"

    async def _answer(self, turn: Turn) -> None:
        prompt = "\n".join(str(block.get("text", "")) for block in turn.blocks if block.get("type") == "text")
        answer = self._function(prompt, turn) if self._takes_turn else self._function(prompt)
        if isinstance(answer, AsyncIterator):
            async for piece in answer:
                await turn.say(str(piece))
        elif inspect.isawaitable(answer):
            text = await answer
            if text is not None:
                await turn.say(str(text))
        else:
            raise TypeError("it must be an async function or an async generator")


async def serve(function: Function) -> None:
    """Speak ACP on stdin and stdout until the client is gone."""
    agent = PlainAgent(function)
    link = await StdioLink.open(agent.peer, limits.MAX_MESSAGE_BYTES)
    await agent.left.wait()
    await link.finish()
