"""One WebSocket client of the gateway: `initialize` first, back-pressure, close codes."""

from __future__ import annotations

import logging
from collections.abc import Callable

from dragoman.rpc.link import LinkHandler
from dragoman.rpc.websocket import NORMAL, PING_INTERVAL, PROTOCOL_ERROR, WebSocket, accept_key
from dragoman.server import limits
from dragoman.wire import message
from dragoman.wire.errors import PARSE_ERROR, Malformed
from dragoman.wire.framing import Frame

__all__ = [
    "NORMAL",
    "OVERLOAD",
    "POLICY_VIOLATION",
    "PROTOCOL_ERROR",
    "RESTART",
    "WebSocketLink",
    "accept_key",
]

log = logging.getLogger(__name__)

POLICY_VIOLATION = 1008
RESTART = 1012
OVERLOAD = 1013


class WebSocketLink(WebSocket):
    """Implements `Link`; with `initialize_first`, any other first message closes the socket with 1002 (G-128)."""

    def __init__(
        self,
        handler: LinkHandler,
        max_bytes: int,
        *,
        restarting: Callable[[], bool],
        initialize_first: bool = True,
        ping_interval: float = PING_INTERVAL,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(handler, max_bytes, client=False, ping_interval=ping_interval, on_end=on_end)
        self._restarting = restarting
        self._waits_for_initialize = initialize_first
        self._congested = False
        self._choose_delivery()
        self._taken = 0
        self._progress = self._loop.time()

    def close(self) -> None:
        self.close_with(RESTART if self._restarting() else NORMAL)

    # -- a peer that sends requests and never reads

    def pause_writing(self) -> None:
        self._congested = True
        self._choose_delivery()
        self._progress = self._loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._congested = False
        self._choose_delivery()
        self.resume()
        super().resume_writing()

    def _ping(self) -> None:
        if self._transport is not None and self._stalled(self._transport.get_write_buffer_size()):
            log.info("websocket peer reads nothing, cutting it off", extra={"bytes": self.backlog})
            self._reason = "it read nothing"
            self._transport.abort()
        else:
            super()._ping()

    def _stalled(self, waiting: int) -> bool:
        """Whether the peer has not read a byte for too long."""
        now = self._loop.time()
        taken = self._outbox.written - waiting
        if taken > self._taken or not self._congested:
            self._taken, self._progress = taken, now
        return now - self._progress > limits.STALL_TIMEOUT

    def _choose_delivery(self) -> None:
        """Deliver messages to `_admit` while they have to be checked, else straight to the handler, which is faster."""
        looks = self._waits_for_initialize or self._congested
        self._deliver = self._admit if looks else self._handler.link_messages

    def _admit(self, frames: list[Frame]) -> None:
        if self._waits_for_initialize:
            wanted = [index for index, frame in enumerate(frames) if not is_noise(frame)]
            if wanted and not is_initialize(frames[wanted[0]]):
                self.close_with(PROTOCOL_ERROR, "the first message must be initialize")
                return
            self._waits_for_initialize = not wanted
            self._choose_delivery()
        self._handler.link_messages(frames)
        if self._congested and not self._closing and self.backlog > limits.MAX_SOCKET_BACKLOG:
            self.pause()  # until the peer has read its responses


def is_initialize(frame: Frame) -> bool:
    """Whether a frame is `initialize`, the required first message of network clients (G-128)."""
    try:
        return isinstance(frame, bytes) and message.decode(frame).method == "initialize"
    except Malformed:
        return False


def is_noise(frame: Frame) -> bool:
    """Whether a frame is not JSON: it is answered -32700 and the connection stays open, even before `initialize`."""
    if not isinstance(frame, bytes):
        return False
    try:
        message.decode(frame)
    except Malformed as error:
        return error.code == PARSE_ERROR
    return False
