"""A decoder for event streams (the WHATWG rules, as far as ACP uses them): bytes in, events out."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.wire.framing import single_line


class TooLong(Exception):
    """An event exceeds the maximum message size."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    data: bytes
    id: str | None = None


class EventDecoder:
    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._rest: list[bytes] = []
        self._rest_size = 0
        self._data: list[bytes] = []
        self._size = 0
        self._id: str | None = None
        self.comments = 0
        """Number of comments, which servers send as keep-alives."""

    def feed(self, data: bytes) -> list[ServerEvent]:
        """The events that `data` completes; raises `TooLong`."""
        events: list[ServerEvent] = []
        self._rest.append(data)
        self._rest_size += len(data)
        if b"\n" in data:
            lines = b"".join(self._rest).replace(b"\r\n", b"\n").split(b"\n")
            self._rest = [lines.pop()]
            self._rest_size = len(self._rest[0])
            for line in lines:
                if line:
                    self._line(line)
                elif self._data:
                    events.append(ServerEvent(single_line(b" ".join(self._data)), self._id))
                    self._data, self._size, self._id = [], 0, None
        if self._size + self._rest_size > self._max + 1024:
            raise TooLong(f"an event is longer than {self._max} bytes (limits.max_message_bytes)")
        return events

    def _line(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not name:
            self.comments += 1
        elif name == b"data":
            self._data.append(value)
            self._size += len(value)
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode(errors="replace")
