"""Errors of the client library; each message says what to do next.

DragomanError ─┬─ CannotConnect     no gateway was reached
               ├─ ConnectionLost    the gateway was reached, and is gone for good
               ├─ RequestRefused    the gateway or the agent refused a request
               │   └─ LoginRequired     the agent wants a login first
               ├─ StreamOverflow    events of a session waited unread for too long
               └─ NoSuchOption      a question has no option for this answer
"""

from __future__ import annotations

from typing import Any

from dragoman.wire.errors import AUTH_REQUIRED, RpcError
from dragoman.wire.json_types import as_object

_GONE = frozenset({"connection_closed", "shutdown"})


class DragomanError(Exception):
    """Any error of this library."""


class CannotConnect(DragomanError):
    """No gateway was reached."""


class ConnectionLost(DragomanError):
    """The connection ended and cannot be restored; a session can be resumed after its last `seq`."""


class RequestRefused(DragomanError):
    """The gateway or the agent refused a request."""

    def __init__(self, message: str, code: int, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        """The JSON-RPC error code."""
        self.data = data
        """The error's data, as it was sent."""

    @property
    def reason(self) -> str:
        """The gateway's word for what is wrong, such as `queue_full`; empty if it gave none."""
        found = as_object(self.data).get("reason")
        return found if isinstance(found, str) else ""


class LoginRequired(RequestRefused):
    """The agent wants a login first, which its own program does."""


class StreamOverflow(DragomanError):
    """Too many events of one session waited unread while others of the connection were read."""


class NoSuchOption(DragomanError):
    """A question has no option, or several, for this answer: pass one of its options to `choose`."""


def error_of(error: RpcError) -> DragomanError:
    """The error of this library for an error response."""
    if as_object(error.data).get("reason") in _GONE:
        return ConnectionLost(error.message)
    kind = LoginRequired if error.code == AUTH_REQUIRED else RequestRefused
    return kind(error.message, error.code, error.data)
