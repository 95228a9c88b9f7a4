"""Decodes a request's params into the struct that a method expects."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from dragoman.wire.errors import invalid_params

T = TypeVar("T")


def decode(raw: bytes, shape: type[T]) -> T:
    """The params as `shape`; unknown members are ignored, invalid ones named in the error."""
    try:
        return msgspec.json.decode(raw, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise invalid_params(f"Invalid params: {error}") from error
