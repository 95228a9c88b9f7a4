"""asyncio protocols for the pipes of a child."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dragoman.rpc.outbox import Outbox


class Incoming(asyncio.Protocol):
    """Passes on a child's output, and the end of the pipe."""

    def __init__(self, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self.data_received = on_data  # type: ignore[assignment]  # no extra call per message
        self._on_end = on_end

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_end()


class Outgoing(asyncio.BaseProtocol):
    """Tells the outbox when the child reads too slowly, and calls `on_end` when it stops reading."""

    def __init__(self, outbox: Outbox, on_end: Callable[[], None]) -> None:
        self._outbox = outbox
        self._on_end = on_end

    def pause_writing(self) -> None:
        self._outbox.pause_writing()

    def resume_writing(self) -> None:
        self._outbox.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        # The agent broke the pipe; not an error of ours.
        self._on_end()
