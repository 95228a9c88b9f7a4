"""How a turn of Codex failed, in words for a person, by its `codexErrorInfo`."""

from __future__ import annotations

from dragoman.agents.json_types import JsonObject, as_object
from dragoman.wire.errors import AUTH_REQUIRED, RpcError, internal

LOGIN = {
    "id": "codex-login",
    "name": "Log in with Codex",
    "description": "Run `codex login` in a terminal, or set OPENAI_API_KEY",
}
NEXT_STEP = {
    "contextWindowExceeded": "The conversation is too long for the model: start a new session, or let it compact.",
    "usageLimitExceeded": "The usage limit of the account is reached.",
    "serverOverloaded": "The model is overloaded: try again in a while.",
    "sandboxError": "The command sandbox failed.",
}


def failure(error: JsonObject) -> RpcError:
    """From `turn.error` or an `error` notification."""
    info = error.get("codexErrorInfo")
    kind = info if isinstance(info, str) else next(iter(as_object(info)), "other")
    message = str(error.get("message") or "it gave no reason")
    status = as_object(as_object(info).get(kind)).get("httpStatusCode")
    if kind == "unauthorized" or status == 401:
        return auth_required(message)
    told = f"Codex could not finish the turn: {message}"
    step = NEXT_STEP.get(kind)
    return internal(f"{told} {step}" if step else told, "api_error", codexErrorInfo=info)


def auth_required(message: str) -> RpcError:
    told = f"Codex is not logged in: {message.strip().rstrip('.')}. {LOGIN['description']}."
    return RpcError(AUTH_REQUIRED, told, {"authMethods": [LOGIN]})
