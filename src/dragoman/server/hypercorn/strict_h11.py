"""A stricter h11 that refuses ambiguous requests (request smuggling, RFC 9112 §11.2).

h11 is lenient where RFC 9112 allows it, and a proxy in front may be lenient in another way: then one of them sees a
request where the other sees the rest of a body. Besides what h11 refuses, these are refused:

- a line that ends with a bare line feed, or holds a bare carriage return, in a head, a chunk's size or a trailer (§2.2)
- a header that is folded over several lines (§5.2)
- `Content-Length` beside `Transfer-Encoding`, either of them twice, or a list of lengths (§6.3)
- an upgrade to a WebSocket that has a body: its bytes would be read as frames
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import h11
from h11._receivebuffer import ReceiveBuffer

_LINE_END = re.compile(rb"\r\n\r\n|(?<!\r)\n|\r(?=[^\n])")
_END = b"\r\n\r\n"

BAD_LINE_END = "lines end with a carriage return and a line feed"


def head_size(data: bytes | bytearray) -> int:
    """Length of the head at the beginning of `data` with its empty line; 0 while it is incomplete.

    Raises `h11.LocalProtocolError` for a bare carriage return or line feed.
    """
    found = _LINE_END.search(data)
    if found is None:
        return 0
    if found.group() != _END:
        raise h11.LocalProtocolError(BAD_LINE_END)
    return found.end()


def strict_connection(max_head_bytes: int) -> h11.Connection:
    """The server side of a connection, with strict reading."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=max_head_bytes)
    connection._receive_buffer = _StrictBuffer()
    return connection


class _StrictBuffer(ReceiveBuffer):
    """The buffer that h11 takes lines from; h11 reports errors raised here as the peer's."""

    def maybe_extract_lines(self) -> list[bytearray] | None:
        if self._data[:2] != b"\r\n":  # an empty head, or no trailers
            head_size(self._data)
        lines = super().maybe_extract_lines()
        if lines:
            _check_headers(lines)
        return lines

    def maybe_extract_next_line(self) -> bytearray | None:
        line = super().maybe_extract_next_line()
        if line is not None and b"\r" in line[:-2]:
            raise h11.LocalProtocolError(BAD_LINE_END)
        return line


def _check_headers(lines: Sequence[bytes | bytearray]) -> None:
    """Check a request's head, or the trailers of a body, which have no request line."""
    headers: Counter[bytes] = Counter()
    values: dict[bytes, bytes] = {}
    for line in lines:
        if line[:1] in (b" ", b"\t"):
            raise h11.LocalProtocolError("a header is folded over several lines")
        name, colon, value = bytes(line).partition(b":")
        if colon:
            headers[name.lower()] += 1
            values[name.lower()] = value.strip().lower()
    lengths, encodings = headers[b"content-length"], headers[b"transfer-encoding"]
    if lengths + encodings > 1 or b"," in values.get(b"content-length", b""):
        raise h11.LocalProtocolError("the length of the body is given more than once")
    has_body = encodings or values.get(b"content-length", b"0").strip(b"0")
    if has_body and values.get(b"upgrade") == b"websocket":
        raise h11.LocalProtocolError("a WebSocket begins without a body")
