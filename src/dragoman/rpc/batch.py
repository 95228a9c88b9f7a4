"""The replies to one array of messages, sent as one array when all are there (G-018)."""

from __future__ import annotations

from collections.abc import Callable


class Batch:
    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._answers: list[bytes] = []
        self._waiting = 0
        self._open = True

    def expect(self) -> None:
        """One more reply will come."""
        self._waiting += 1

    def add(self, answer: bytes) -> None:
        self._waiting -= 1
        self._answers.append(answer)
        self._finish()

    def close(self) -> None:
        """All entries were read; notifications alone get no reply at all."""
        self._open = False
        self._finish()

    def _finish(self) -> None:
        if not self._open and self._waiting == 0 and self._answers:
            self._send(b"[" + b",".join(self._answers) + b"]")
            self._answers = []
