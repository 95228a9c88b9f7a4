"""The last part of a command's output."""

from __future__ import annotations

import codecs


class OutputTail:
    """Holds at most `limit` bytes; the oldest are dropped first."""

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

        Unless `complete`, a partial character at the end is left out. Bytes that are not UTF-8 become U+FFFD,
        which takes more bytes, so the text may have to be cut again.
        """
        kept = _from_character(bytes(self._kept)) if self.truncated else bytes(self._kept)
        text = codecs.getincrementaldecoder("utf-8")("replace").decode(kept, final=complete)
        encoded = text.encode()
        if len(encoded) <= self._limit:
            return text
        self.truncated = True
        return _from_character(encoded[len(encoded) - self._limit :]).decode()


def _from_character(data: bytes) -> bytes:
    """The data without a partial character at its beginning."""
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]
