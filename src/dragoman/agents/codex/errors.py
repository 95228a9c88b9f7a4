"""The errors of failed turns of Codex, worded for the user, by `codexErrorInfo`."""

from __future__ import annotations

from dragoman.wire.errors import AUTH_REQUIRED, RpcError, internal
from dragoman.wire.json_types import JsonObject, as_object

LOGIN = {
    "id": "codex-login",
    "name": "Log in with Codex",
    "description": "Run `codex login` in a terminal, or set OPENAI_API_KEY",
}
_AGAIN = "Try again in a while."
_NETWORK = "Is its server reachable from here? Then try again."
NEXT_STEP = {
    "contextWindowExceeded": "The conversation is too long for the model: start a new session, or use /compact.",
    "sessionBudgetExceeded": "The session has used what it may: start a new one.",
    "usageLimitExceeded": "The usage limit of the account is reached: wait until it is renewed, or buy more.",
    "rateLimitExceeded": f"Too many requests. {_AGAIN}",
    "serverOverloaded": f"The model is overloaded. {_AGAIN}",
    "flexUnavailable": f"The service tier is not available now. {_AGAIN}",
    "policyCapacityUnavailable": _AGAIN,
    "internalServerError": f"The model's server failed. {_AGAIN}",
    "modelNotFound": "Choose another model.",
    "cyberPolicy": "The model's provider refuses this request: say it differently.",
    "misalignmentPolicyViolation": "The model's provider refuses this request: say it differently.",
    "tooManyDenials": "Too much was refused in this turn: allow more, or ask for something else.",
    "badRequest": "The model's server did not take the request: another model may.",
    "sandboxError": "The command sandbox failed: choose another mode, or run Dragoman's own sandbox.",
    "httpConnectionFailed": _NETWORK,
    "responseStreamConnectionFailed": _NETWORK,
    "responseStreamDisconnected": _NETWORK,
    "responseTooManyFailedAttempts": _NETWORK,
}


def failure(error: JsonObject) -> RpcError:
    """The error for `turn.error` or an `error` notification."""
    info = error.get("codexErrorInfo")
    kind = info if isinstance(info, str) else next(iter(as_object(info)), "other")
    message = str(error.get("message") or "it gave no reason")
    status = as_object(as_object(info).get(kind)).get("httpStatusCode")
    if kind == "unauthorized" or status == 401:
        return auth_required(message)
    told = f"Codex could not finish the turn: {message}"
    step = NEXT_STEP.get(kind)
    return internal(f"{told.rstrip('.')}. {step}" if step else told, "api_error", codexErrorInfo=info)


def auth_required(message: str) -> RpcError:
    told = f"Codex is not logged in: {message.strip().rstrip('.')}. {LOGIN['description']}."
    return RpcError(AUTH_REQUIRED, told, {"authMethods": [LOGIN]})
