"""One WebSocket client of the gateway: how it begins, and what it is told at the end."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.rpc.link import LinkHandler
from dragoman.rpc.websocket import NORMAL, PING_INTERVAL, PROTOCOL_ERROR, WebSocket, accept_key, frame_text
from dragoman.wire import message
from dragoman.wire.errors import PARSE_ERROR, Malformed
from dragoman.wire.framing import Frame

__all__ = [
    "NORMAL",
    "POLICY_VIOLATION",
    "PROTOCOL_ERROR",
    "RESTART",
    "WebSocketLink",
    "accept_key",
    "frame_text",
]

POLICY_VIOLATION = 1008
RESTART = 1012


class WebSocketLink(WebSocket):
    """Implements `Link`; `initialize_first` closes with 1002 whoever begins with anything else (G-128)."""

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

    def close(self) -> None:
        self.close_with(RESTART if self._restarting() else NORMAL)

    def _hand_over(self, frames: list[Frame]) -> None:
        if self._closing or not frames:
            return
        if self._waits_for_initialize:
            wanted = [index for index, frame in enumerate(frames) if not is_noise(frame)]
            if wanted and not is_initialize(frames[wanted[0]]):
                self.close_with(PROTOCOL_ERROR, "the first message must be initialize")
                return
            self._waits_for_initialize = not wanted
        self._handler.link_messages(frames)


def is_initialize(frame: Frame) -> bool:
    """Network clients begin with it (G-128)."""
    try:
        return isinstance(frame, bytes) and message.decode(frame).method == "initialize"
    except Malformed:
        return False


def is_noise(frame: Frame) -> bool:
    """What is not JSON is answered -32700 and the connection stays open, also at its beginning."""
    if not isinstance(frame, bytes):
        return False
    try:
        message.decode(frame)
    except Malformed as error:
        return error.code == PARSE_ERROR
    return False
