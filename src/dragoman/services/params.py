"""Decodes a request's params into the struct that a method expects."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from dragoman.wire.errors import RpcError, invalid_params

T = TypeVar("T")


def decode(raw: bytes, shape: type[T]) -> T:
    """The params as `shape`; unknown members are ignored, invalid ones named in the error."""
    try:
        return msgspec.json.decode(raw, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _invalid(error) from error


def _invalid(error: Exception) -> RpcError:
    return invalid_params(f"Invalid params: {error}")
