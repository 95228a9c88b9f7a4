"""The last part of what a command wrote."""

from __future__ import annotations

import codecs


class OutputTail:
    """Keeps at most `limit` bytes; what came first is dropped first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self.truncated = False

    def add(self, data: bytes) -> None:
        self._kept += data
        surplus = len(self._kept) - self._limit
        if surplus > 0:
            del self._kept[:surplus]
            self.truncated = True

    def text(self, *, complete: bool) -> str:
        """The output as text that begins with a whole character.

        Unless it is complete, a character of which a part has arrived waits for the rest. What is not UTF-8
        shows as U+FFFD, which takes more bytes than what it stands for, hence the second cut.
        """
        kept = _from_character(bytes(self._kept)) if self.truncated else bytes(self._kept)
        text = codecs.getincrementaldecoder("utf-8")("replace").decode(kept, final=complete)
        encoded = text.encode()
        if len(encoded) <= self._limit:
            return text
        self.truncated = True
        return _from_character(encoded[len(encoded) - self._limit :]).decode()


def _from_character(data: bytes) -> bytes:
    """The data without the rest of a character that was cut at its beginning."""
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]
