"""Paths as git's streams write them, and as people and JSON are shown them."""

from __future__ import annotations

_PLAIN = frozenset(range(0x20, 0x7F)) - set(b'"\\')


def quoted(path: bytes) -> bytes:
    """A path for `git fast-import`: always quoted, as in C."""
    if all(byte in _PLAIN for byte in path):
        return b'"' + path + b'"'
    inner = b"".join(bytes([byte]) if byte in _PLAIN else b"\\%03o" % byte for byte in path)
    return b'"' + inner + b'"'


def shown(path: bytes) -> str:
    """A path as text; invalid UTF-8 as `\\xNN`."""
    return path.decode(errors="backslashreplace")
