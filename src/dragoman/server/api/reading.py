"""Reads and validates the JSON body of a request."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from dragoman.server import limits
from dragoman.server.asgi import HttpError, Request

T = TypeVar("T")


async def read(request: Request, shape: type[T]) -> T:
    """Decode the body as `shape`, or raise `HttpError` with the place of the mismatch."""
    request.require_json()
    body = await request.body(limits.MAX_API_BYTES)
    try:
        return msgspec.json.decode(body, type=shape)
    except msgspec.ValidationError as error:
        raise HttpError(400, f"The body is not valid: {error}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HttpError(400, f"The body is not JSON: {error}.") from error
