"""A person's client of a gateway with a real agent: patient, and choosing permission options by their kind."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any, cast

from support.gateway_process import GatewayProcess
from support.rpc_peer import Message, Turn, is_request, is_update, text_of

STARTING = 90.0
"""Seconds for anything that may start an agent: opencode alone needs five on a loaded machine."""


class RealGateway(GatewayProcess):
    """`dragoman acp` with a real agent behind it."""

    program = ""
    """The agent's own file, by which its processes are known."""

    async def greet(self, capabilities: dict[str, Any]) -> None:
        hello = {"protocolVersion": 1, "clientCapabilities": capabilities}
        self.introduction = await self.request("initialize", hello, STARTING)

    async def open_session(self, workspace: Path) -> str:
        params = {"cwd": str(workspace), "mcpServers": []}
        return str((await self.request("session/new", params, STARTING))["sessionId"])

    async def question(self) -> Message:
        """The next permission question."""
        return await self.next_message(is_request("session/request_permission"), STARTING)

    def choose(self, question: Message, kind: str) -> None:
        """Answer with the first option of `kind`."""
        self.reply(question, chosen(question["params"], kind))

    async def tick(self, session: str) -> None:
        """Wait until a slow answer of this session goes on."""
        ours = is_update(session)
        await self.next_message(lambda m: ours(m) and "tick" in text_of(m["params"]["update"]), STARTING)

    def agent_processes(self) -> dict[int, str]:
        """The agents that the gateway itself started, without its watcher and without what they started."""
        running = self.processes()
        starters = {self.process.pid, *(pid for pid, line in running.items() if "custody/watcher.py" in line)}
        return {
            pid: line
            for pid, line in running.items()
            if self.program in line and _parent(pid) in starters and pid not in starters
        }

    def kill_agent(self) -> None:
        """As the kernel does when memory runs out."""
        (pid,) = self.agent_processes()
        os.kill(pid, signal.SIGKILL)


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except FileNotFoundError:
        return 0


def said(updates: list[Message], kind: str = "agent_message_chunk") -> str:
    """All the text of one kind of chunk."""
    chunks = (update.get("content") for update in updates if update.get("sessionUpdate") == kind)
    return "".join(str(cast(Message, chunk).get("text", "")) for chunk in chunks)


def tool_status(turn: Turn, question: Message) -> str | None:
    """The last status of the tool call that the question was about."""
    asked = question["params"]["toolCall"]["toolCallId"]
    about = (update for update in turn.updates if update.get("toolCallId") == asked)
    return next((update["status"] for update in reversed(list(about)) if update.get("status")), None)


def chosen(params: Message, kind: str) -> Message:
    """The answer to a permission question: its first option of `kind`."""
    offered = [option["optionId"] for option in params["options"] if option["kind"] == kind]
    return {"outcome": {"outcome": "selected", "optionId": offered[0]}}
