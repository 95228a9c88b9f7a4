"""The error codes (docs/reference/protocol-rules.md) and the two error families.

`RpcError` is an error response: the code and message that the peer receives. `Malformed` is a message that cannot be
parsed. Neither is a bug of the gateway: a bug surfaces as an ordinary exception, which one place (`rpc.peer`) turns
into `-32603`.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
AUTH_REQUIRED = -32000
NOT_FOUND = -32002
FORBIDDEN = -32003
TOO_MANY = -32029
CANCELLED = -32800


class ErrorObject(msgspec.Struct, omit_defaults=True):
    """The `error` member of a response."""

    code: int
    message: str
    data: Any = None


class RpcError(Exception):
    """An error that is sent to the peer as a response."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def encode(self) -> bytes:
        return msgspec.json.encode(ErrorObject(self.code, self.message, self.data))


class Malformed(Exception):
    """A message that is not JSON, or not JSON-RPC; `id` is its raw id, or `null` if none could be read."""

    def __init__(self, code: int, message: str, id: bytes = b"null") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.id = id

    def as_error(self) -> RpcError:
        return RpcError(self.code, self.message)


def invalid_request(message: str, reason: str | None = None) -> RpcError:
    return RpcError(INVALID_REQUEST, message, _reason(reason))


def method_not_found(method: str) -> RpcError:
    return RpcError(METHOD_NOT_FOUND, f"Method not found: {method}", {"method": method})


def invalid_params(message: str, reason: str | None = None, **data: Any) -> RpcError:
    return RpcError(INVALID_PARAMS, message, _reason(reason, **data))


def internal(message: str, reason: str | None = None, **data: Any) -> RpcError:
    return RpcError(INTERNAL_ERROR, message, _reason(reason, **data))


def forbidden(message: str, **data: Any) -> RpcError:
    """Error for a known client that may not do this; never `-32000`, which clients read as "log in"."""
    return RpcError(FORBIDDEN, message, {"reason": "role", **data})


def too_many(message: str, retry_after: float, limit: str) -> RpcError:
    """Error for a reached quota; `retryAfter` is in whole seconds, as in HTTP."""
    wait = max(1, math.ceil(retry_after))
    data = {"reason": "quota", "limit": limit, "retryAfter": wait}
    return RpcError(TOO_MANY, f"{message} (quota {limit}); try again in {wait} s", data)


def session_not_found(session_id: str, hint: str = "") -> RpcError:
    """Error for an unknown session; never `-32000`, which clients read as "log in" (G-045)."""
    message = f"Session not found: {session_id}" + (f". {hint}" if hint else "")
    return RpcError(NOT_FOUND, message, {"sessionId": session_id})


def _reason(reason: str | None, **data: Any) -> dict[str, Any] | None:
    if reason is not None:
        data = {"reason": reason, **data}
    return data or None
