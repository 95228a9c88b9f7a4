"""Collects the replies to one JSON-RPC batch and sends them as one array when all are there (G-018)."""

from __future__ import annotations

from collections.abc import Callable


class Batch:
    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._answers: list[bytes] = []
        self._waiting = 0
        self._open = True

    def expect(self) -> None:
        """Wait for one more reply."""
        self._waiting += 1

    def add(self, answer: bytes) -> None:
        self._waiting -= 1
        self._answers.append(answer)
        self._finish()

    def close(self) -> None:
        """Mark all entries as read; a batch of notifications alone gets no reply."""
        self._open = False
        self._finish()

    def _finish(self) -> None:
        if not self._open and self._waiting == 0 and self._answers:
            self._send(b"[" + b",".join(self._answers) + b"]")
            self._answers = []
