"""What the scripted agents of a test received, read from the file that they append to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.rpc_peer import PATIENCE

Message = dict[str, Any]


class AgentLog:
    """One file for all agent processes of a test; its lines are the bytes that came over their pipes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def flags(self) -> tuple[str, str]:
        return ("--journal-file", str(self.path))

    @property
    def lines(self) -> list[bytes]:
        if not self.path.exists():
            return []
        return self.path.read_bytes().split(b"\n")[:-1]  # what follows the last line feed is half a line

    @property
    def messages(self) -> list[Message]:
        return [json.loads(line) for line in self.lines if line.strip()]

    @property
    def methods(self) -> list[str]:
        return [message.get("method", "response") for message in self.messages]

    def params(self, method: str) -> list[Any]:
        return [message.get("params") for message in self.messages if message.get("method") == method]

    async def until(self, found: Callable[[AgentLog], Any], timeout: float = PATIENCE) -> Any:
        """Wait until `found(journal)` is true; returns its value."""
        async with asyncio.timeout(timeout):
            while not (value := found(self)):
                await asyncio.sleep(0.01)  # a file that another process appends to raises no event here
        return value

    async def until_method(self, method: str, timeout: float = PATIENCE) -> Any:
        """Wait for a message `method`; returns its params."""
        return (await self.until(lambda journal: journal.params(method), timeout))[0]
