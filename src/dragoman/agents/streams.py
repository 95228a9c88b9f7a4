"""The ends of a child's pipes as asyncio sees them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dragoman.rpc.outbox import Outbox


class Incoming(asyncio.Protocol):
    """Hands on what a child writes, and that it has ended."""

    def __init__(self, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self.data_received = on_data  # type: ignore[assignment]  # every message passes here
        self._on_end = on_end

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_end()


class Outgoing(asyncio.BaseProtocol):
    """Tells the outbox when the child falls behind, and the owner when it does not read any more."""

    def __init__(self, outbox: Outbox, on_end: Callable[[], None]) -> None:
        self._outbox = outbox
        self._on_end = on_end

    def pause_writing(self) -> None:
        self._outbox.pause_writing()

    def resume_writing(self) -> None:
        self._outbox.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        # A broken pipe is the agent's doing, no error of ours.
        self._on_end()
