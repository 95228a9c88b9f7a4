"""Times as text: ISO 8601 in UTC with milliseconds, in journals, in the directory and on the wire."""

from __future__ import annotations

import functools
import time
from datetime import datetime


def now() -> str:
    return timestamp(time.time_ns() // 1_000_000)


def timestamp(ts: int) -> str:
    """The text for a time in milliseconds since 1970."""
    return f"{second(ts // 1000)}.{ts % 1000:03d}Z"


def milliseconds(stamp: str) -> int:
    """Milliseconds since 1970; 0 if `stamp` is not a time."""
    try:
        return round(datetime.fromisoformat(stamp).timestamp() * 1000)
    except ValueError:
        return 0


@functools.lru_cache(maxsize=256)
def second(seconds: int) -> str:
    """A time without its fraction; remembered, since many messages are dated within one second."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
