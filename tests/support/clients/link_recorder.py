"""A link handler that keeps what it is told."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from dragoman.rpc.link import Link
from dragoman.wire.framing import Frame

PATIENCE = 20.0


class LinkRecorder:
    """Frames and closings in the order they came."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.reads = 0
        self.writable: list[bool] = []
        self.closings: list[str | None] = []
        self._changed = asyncio.Event()

    def link_opened(self, link: Link) -> None:
        pass

    def link_messages(self, frames: list[Frame]) -> None:
        assert not self.closings, "a message after the link was closed"
        self.frames += frames
        self.reads += 1
        self._changed.set()

    def link_writable(self, writable: bool) -> None:
        self.writable.append(writable)
        self._changed.set()

    def link_closed(self, reason: str | None) -> None:
        self.closings.append(reason)
        self._changed.set()

    async def message(self, index: int = 0) -> Any:
        """The message number `index`, decoded."""
        await self._wait(lambda: len(self.frames) > index)
        frame = self.frames[index]
        assert isinstance(frame, bytes), frame
        return json.loads(frame)

    async def closed(self) -> str | None:
        await self._wait(lambda: self.closings)
        return self.closings[0]

    async def told_writable(self, count: int) -> None:
        await self._wait(lambda: len(self.writable) >= count)

    async def _wait(self, predicate: Any) -> None:
        async with asyncio.timeout(PATIENCE):
            while not predicate():
                self._changed.clear()
                await self._changed.wait()
