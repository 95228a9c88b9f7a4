"""The built-in agent as a process, and the client that talks to it."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from support.fork_server import ForkedProcess, start_forked
from support.gateway_process import LINE_LIMIT
from support.rpc_peer import PATIENCE, Message, RpcPeer, Turn

KEYS = (
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "OLLAMA_HOST",
)


def bare_environment() -> dict[str, str]:
    """Ours, without any key of a model and any setting of Dragoman's."""
    return {
        key: value
        for key, value in os.environ.items()
        if key not in KEYS and not key.startswith(("DRAGOMAN_", "XDG_"))
    }


class Builtin(RpcPeer):
    """A running agent whose questions are answered by `answer` (an option id, or None for cancelled)."""

    process: Process | ForkedProcess
    questions: list[Message]
    answer: str | None
    hello: Message

    @classmethod
    async def start(
        cls,
        home: Path,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        capabilities: Message | None = None,
        module: str = "dragoman.builtin",
        warm: bool = False,
    ) -> Builtin:
        """`warm`: one that has loaded already what speaks to models."""
        environment = {**bare_environment(), "DRAGOMAN_HOME": str(home), **(env or {})}
        if warm:
            process: Process | ForkedProcess = await start_forked(
                "builtin", arguments, environment, home, LINE_LIMIT, piped_stderr=False
            )
        else:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", module, *arguments),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=None,
                env=environment,
                cwd=home,
                limit=LINE_LIMIT,
            )
        assert process.stdin and process.stdout
        agent = cls(process.stdout, process.stdin)
        agent.process = process
        agent.questions = []
        agent.answer = "allow_once"
        agent.on("session/request_permission", agent._asked)
        agent.hello = await agent.initialize(clientCapabilities=capabilities or {})
        return agent

    def _asked(self, params: Message) -> Message:
        self.questions.append(params)
        if self.answer is None:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": self.answer}}

    async def stop(self) -> int:
        self.eof()
        async with asyncio.timeout(PATIENCE):
            code = await self.process.wait()
        await self.close()
        return code


StartBuiltin = Callable[..., Awaitable[Builtin]]
"""The `builtin` fixture."""


def said(turn: Turn) -> str:
    """All that the agent said."""
    return "".join(turn.texts)


def calls(turn: Turn) -> list[Message]:
    """The tool calls of a turn, each as it was in the end."""
    found: dict[str, Message] = {}
    for update in turn.updates:
        if update["sessionUpdate"] in ("tool_call", "tool_call_update"):
            fields = {key: value for key, value in update.items() if key != "sessionUpdate"}
            found.setdefault(update["toolCallId"], {}).update(fields)
    return list(found.values())


def shown(call: Message) -> str:
    """The text that a tool call shows."""
    parts = [item["content"]["text"] for item in call.get("content", []) if item["type"] == "content"]
    return "\n".join(parts)


def updates(turn: Turn, kind: str) -> list[Any]:
    return [update for update in turn.updates if update["sessionUpdate"] == kind]
