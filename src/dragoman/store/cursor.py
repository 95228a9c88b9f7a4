"""Cursors of the session list: a position, sealed so that only the list it came from accepts it."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b
from typing import TypeAlias

import msgspec

from dragoman.gateway.ports.store import BadCursor

Position: TypeAlias = tuple[str, int]
"""The last session of a page, in the order of the list: its time, and its number in the table."""
_SEAL_BYTES = 8


def encode(position: Position, store_id: str, filters: tuple[str | None, ...]) -> str:
    body = msgspec.json.encode(position)
    return urlsafe_b64encode(_seal(body, store_id, filters) + body).rstrip(b"=").decode()


def decode(cursor: str, store_id: str, filters: tuple[str | None, ...]) -> Position:
    try:
        raw = urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4))
    except (binascii.Error, UnicodeError):
        raw = b""
    body = raw[_SEAL_BYTES:]
    if not body or raw[:_SEAL_BYTES] != _seal(body, store_id, filters):
        raise BadCursor(
            "The cursor is not from this list. Start again without one, and keep the filters between pages."
        )
    return msgspec.json.decode(body, type=tuple[str, int])


def _seal(body: bytes, store_id: str, filters: tuple[str | None, ...]) -> bytes:
    context = msgspec.json.encode(filters)
    return blake2b(context + b"\n" + body, key=store_id.encode(), digest_size=_SEAL_BYTES).digest()
