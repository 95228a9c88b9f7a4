"""The body of a request as what it should be."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from dragoman.server import limits
from dragoman.server.asgi import HttpError, Request

T = TypeVar("T")


async def read(request: Request, shape: type[T]) -> T:
    """Refuses what has another shape, and says where."""
    request.require_json()
    body = await request.body(limits.MAX_API_BYTES)
    try:
        return msgspec.json.decode(body, type=shape)
    except msgspec.ValidationError as error:
        raise HttpError(400, f"The body is not as it should be: {error}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HttpError(400, f"The body is not JSON: {error}.") from error
