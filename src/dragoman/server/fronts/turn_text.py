"""Collects the text that an agent sends in a turn."""

from __future__ import annotations

from dragoman.gateway.delivery.transcript import read_update, said
from dragoman.gateway.json_types import JsonObject, own_meta


class TurnText:
    """Implements `Sink`; stores only the beginning of a text that is too long."""

    writable = True

    def __init__(self, max_bytes: int) -> None:
        self.truncated = False
        self._parts: list[str] = []
        self._max = self._left = max_bytes

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def send(self, message: bytes) -> None:
        if b'"agent_message_chunk"' not in message:
            if b'"session_info_update"' in message:
                self._forget_other_turn(own_meta(read_update(message) or {}))
            return
        _, text = said(read_update(message) or {})
        if len(text) > self._left:
            self.truncated = True
            text = text[: self._left]
        self._left -= len(text)
        if text:
            self._parts.append(text)

    def _forget_other_turn(self, told: JsonObject) -> None:
        """Forget the turn that this prompt waited for: its end is told to all but its own client."""
        if "stopReason" in told or "error" in told:
            self.truncated = False
            self._parts.clear()
            self._left = self._max

    def send_event(self, seq: int, message: bytes) -> None:
        self.send(message)

    def close(self) -> None:
        """Ignored: the reply to the prompt marks the end."""
