"""Splits the bytes of an HTTP/2 peer into frames and limits the rate of each kind before h2 parses them.

Parsing a frame costs a hundred times what sending it does, and most kinds need no answer and no token: settings, pings,
resets and empty data have all been used to stop servers (CVE-2019-9511 to 9518, CVE-2023-44487, CVE-2024-27316). Here
only the nine bytes of a frame's head are read: length, kind and flags (RFC 9113 §4.1).

    DATA, HEADERS        pass; empty data that does not end its stream counts as control
    PRIORITY             dropped, which RFC 9113 §5.3.2 allows; counted, with a higher limit
    WINDOW_UPDATE        a base limit, and some for each stream and each piece of response sent, as in Envoy
    all the others       count as control frames, unknown kinds too
"""

from __future__ import annotations

from collections.abc import Iterator

from h2.errors import ErrorCodes

from dragoman.rpc.rate_limit import RateLimit
from dragoman.server import limits

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD_BYTES = 9
MAX_FRAME_BYTES = 2**14
"""The largest frame that a peer may send by default (RFC 9113 §6.5.2)."""

DATA, HEADERS, PRIORITY, RST_STREAM, WINDOW_UPDATE = 0, 1, 2, 3, 8
END_STREAM = 1
PRIORITY_BYTES = 5


class Refused(Exception):
    """The peer broke a limit or the protocol; its connection ends with the HTTP/2 error `code`."""

    def __init__(self, code: ErrorCodes, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class FrameGate:
    """Sans-IO: `receive` bytes, `take` whole frames."""

    def __init__(self) -> None:
        within = limits.H2_FRAMES_WITHIN
        self._control = RateLimit(limits.MAX_H2_CONTROL_FRAMES, within)
        self._priorities = RateLimit(limits.MAX_H2_PRIORITIES, within)
        self._updates = RateLimit(limits.MAX_H2_WINDOW_UPDATES, within)
        self._resets = RateLimit(limits.MAX_H2_RESETS, limits.RESETS_WITHIN)
        self._preface = len(PREFACE)
        self._data = bytearray()
        self._place = 0

    def receive(self, data: bytes) -> None:
        self._data += data

    def take(self, count: int) -> bytes | None:
        """Read up to `count` whole frames, return those that pass; None if none is complete. Raises `Refused`."""
        if self._preface:
            self._place = min(self._preface, len(self._data))
            self._preface -= self._place
            parts = [bytes(self._data[: self._place])]
        else:
            parts = list(self._frames(count))
        if not self._place:
            return None
        del self._data[: self._place]
        self._place = 0
        return b"".join(parts)

    def sent_data(self) -> None:
        """Allow more window updates: a piece of a response was sent."""
        self._updates.earn(limits.H2_WINDOW_UPDATES_PER_FRAME)

    def refused_stream(self) -> None:
        """Count a stream that was reset because of the peer as one of the peer's own resets."""
        self._spend(self._resets, "resets")

    def _frames(self, count: int) -> Iterator[bytes]:
        for _ in range(count):
            place = self._place
            if len(self._data) - place < HEAD_BYTES:
                return
            size = int.from_bytes(self._data[place : place + 3])
            if size > MAX_FRAME_BYTES:
                raise Refused(ErrorCodes.FRAME_SIZE_ERROR, "a frame is too long")
            if len(self._data) - place < HEAD_BYTES + size:
                return
            self._place += HEAD_BYTES + size
            if self._passes(self._data[place + 3], self._data[place + 4], size):
                yield bytes(self._data[place : self._place])

    def _passes(self, kind: int, flags: int, size: int) -> bool:
        if kind == PRIORITY and size == PRIORITY_BYTES:
            self._spend(self._priorities, "priorities")
            return False
        if kind == RST_STREAM:
            self._spend(self._resets, "resets")
        elif kind == WINDOW_UPDATE:
            self._spend(self._updates, "window updates")
        elif kind == HEADERS:
            self._updates.earn(limits.H2_WINDOW_UPDATES_PER_FRAME)
        elif kind != DATA or not (size or flags & END_STREAM):
            self._spend(self._control, "control frames")
        return True

    def _spend(self, rate: RateLimit, what: str) -> None:
        if not rate.take():
            raise Refused(ErrorCodes.ENHANCE_YOUR_CALM, f"too many {what}")
