"""An agent that is one function: `async def answer(prompt: str, turn: Turn)`.

The function returns the answer, yields it piece by piece, or sends it with `turn.say` and returns None.
"""

from __future__ import annotations

import asyncio
import inspect
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dragoman import __version__
from dragoman.builtin.acp_server import AcpServer
from dragoman.builtin.client import Client, Json
from dragoman.transports.stdio import StdioLink
from dragoman.wire import limits
from dragoman.wire.errors import RpcError, internal, invalid_request, session_not_found

__all__ = ["Turn"]

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
        answer, _ = await self.client.ask_why(self.session, call, options)
        chosen = answer == "allow"
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


class PlainAgent(AcpServer):
    """Hands prompts to the function."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self._function = function
        self._takes_turn = len(inspect.signature(function).parameters) > 1
        self._sessions: dict[str, _Session] = {}
        self.methods = {
            "initialize": self._initialize,
            "authenticate": self.authenticate,
            "session/new": self._new,
            "session/close": self._close,
            "session/cancel": self._cancel,
            "session/prompt": self._prompt,
        }

    def peer_closed(self, reason: str | None) -> RpcError | None:
        self.cancel_tasks()
        return super().peer_closed(reason)

    def failure(self, error: Exception) -> RpcError:
        """The answer to a prompt for which the user's code failed."""
        return internal(f"The agent failed: {type(error).__name__}: {error}", "agent_failed")

    async def _initialize(self, params: Json) -> Json:
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

    async def _new(self, params: Json) -> Json:
        id = f"py_{secrets.token_hex(12)}"
        self._sessions[id] = _Session(str(params.get("cwd")))
        return {"sessionId": id}

    async def _close(self, params: Json) -> Json:
        await self._cancel(params)
        self._sessions.pop(str(params.get("sessionId")), None)
        return {}

    async def _cancel(self, params: Json) -> Json:
        session = self._sessions.get(str(params.get("sessionId")))
        if session is not None and session.turn is not None:
            session.turn.cancel()
        return {}

    async def _prompt(self, params: Json) -> Json:
        id, blocks = str(params.get("sessionId")), params.get("prompt") or []
        session = self._sessions.get(id)
        if session is None:
            raise session_not_found(id)
        if session.turn is not None and not session.turn.done():
            raise invalid_request("A prompt of this session is still being answered", "turn_in_progress")
        turn = Turn(id, session.cwd, blocks, session.state, self.client)
        session.turn = asyncio.ensure_future(self._run(turn))
        try:
            await session.turn
        except asyncio.CancelledError:
            return {"stopReason": "cancelled"}
        return {"stopReason": "end_turn"}

    async def _run(self, turn: Turn) -> None:
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
