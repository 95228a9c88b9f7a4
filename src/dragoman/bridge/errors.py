"""Errors of the bridge: a sentence for the user, a stable code for programs, and a hint what to do next."""

from __future__ import annotations

from dragoman.bridge.events.shapes import text
from dragoman.gateway.json_types import JsonObject, as_object
from dragoman.gateway.ports.store import StoreError
from dragoman.wire.errors import (
    AUTH_REQUIRED,
    CANCELLED,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    NOT_FOUND,
    RpcError,
)


class BridgeError(Exception):
    """A failed command; `code` is stable, `message` may change."""

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint or HINTS.get(code)

    def as_fields(self) -> JsonObject:
        fields: JsonObject = {"code": self.code, "message": self.message}
        return {**fields, "hint": self.hint} if self.hint else fields


HINTS = {
    "unknown_session": "It may have been deleted. The list of sessions shows those that there are.",
    "login_needed": "Log the agent in (`dragoman agents check` says how), then try again.",
    "not_supported": "This agent cannot do that.",
    "agent_exited": "Send your message again: the agent is started anew.",
    "agent_unavailable": "`dragoman agents check` says what is wrong with it.",
    "agent_error": "Try again; the log of Dragoman has the details.",
    "restart": "Send your message again to go on.",
    "shutdown": "Wait until Dragoman is back; nothing that you saw is lost.",
    "session_limit": "Close a session that you do not need any more.",
    "session_held": "Close it in the program that has it, then try again.",
    "busy": "Wait for its end, or cancel it.",
    "too_many_commands": "Wait for the answers to some of them, then send it again.",
    "pruned": "What is left begins later; the list of sessions shows how much is kept.",
    "queue_full": "Wait for the end of the turn, or drop a message that waits.",
    "already_answered": "Another client answered first, or the agent no longer waits for it.",
    "role": "Ask for a token that may do this.",
    "content_type": "Send it as text or as a file in the workspace, or pick another agent.",
    "cwd": "Name a folder that exists, with its whole path.",
    "store_full": "Make room on the disk.",
}

_CODES = {
    AUTH_REQUIRED: "login_needed",
    NOT_FOUND: "unknown_session",
    METHOD_NOT_FOUND: "not_supported",
    INVALID_PARAMS: "bad_request",
    CANCELLED: "cancelled",
}
_SENTENCES = {
    "unknown_session": "There is no such session.",
    "not_supported": "The agent does not know how to do this.",
    "prompt_in_flight": "A turn is running in this session already.",
}
_RENAMED = {"prompt_in_flight": "busy"}
_JARGON = ("Invalid params: ", "Invalid request: ", "Parse error: ", "Internal error: ")


def friendly(error: JsonObject) -> BridgeError:
    """Turn an error object of an agent or the gateway into an error for the user."""
    number, reason = error.get("code"), as_object(error.get("data")).get("reason")
    code = str(reason) if isinstance(reason, str) else "failed"
    if not isinstance(reason, str) and isinstance(number, int):
        code = _CODES.get(number, "failed")
    message = _SENTENCES.get(code) or text(error.get("message")) or "Something went wrong."
    for prefix in _JARGON:
        message = message.removeprefix(prefix)
    return BridgeError(_RENAMED.get(code, code), message)


def as_bridge_error(error: Exception) -> BridgeError:
    """Turn any exception of a command into an error for the page."""
    if isinstance(error, BridgeError):
        return error
    if isinstance(error, RpcError):
        return friendly({"code": error.code, "message": error.message, "data": error.data})
    if isinstance(error, StoreError):
        return BridgeError(error.code, str(error))
    return BridgeError("failed", "Something went wrong in Dragoman; its log has the details.")


def unknown_session() -> BridgeError:
    return BridgeError("unknown_session", _SENTENCES["unknown_session"])
