"""Reads the result of a turn of `claude`: a stop reason or an error (G-160), and usage."""

from __future__ import annotations

from dragoman.wire.errors import AUTH_REQUIRED, RpcError, internal, session_not_found
from dragoman.wire.json_types import JsonObject

LOGIN = {
    "id": "claude-login",
    "name": "Log in with Claude Code",
    "description": "Run `claude /login` in a terminal, or set ANTHROPIC_API_KEY",
}
STOP_REASONS = {
    "success": "end_turn",
    "cancelled": "cancelled",
    "max_tokens": "max_tokens",
    "error_max_turns": "max_turn_requests",
    "error_max_budget_usd": "max_turn_requests",
}
MODEL_STOPS = {"refusal": "refusal", "max_tokens": "max_tokens"}
"""The model's own stop reasons, which come with `success`."""
LOGGED_OUT = (
    "Please run /login",
    "Invalid API key",
    "Failed to authenticate",
    "OAuth token",
    "Not logged in",
)


def auth_required(message: str) -> RpcError:
    told = f"Claude Code is not logged in: {message.strip()}. {LOGIN['description']}."
    return RpcError(AUTH_REQUIRED, told, {"authMethods": [LOGIN]})


def read(result: JsonObject, *, cancelled: bool) -> JsonObject:
    """The answer to the prompt; raises `RpcError` for a turn that failed."""
    subtype = str(result.get("subtype"))
    aborted = str(result.get("terminal_reason") or "").startswith("aborted")
    if cancelled or (aborted and subtype not in STOP_REASONS):
        return _answer("cancelled", result)
    failed = result.get("is_error") is True
    if subtype in STOP_REASONS and not (failed and subtype == "success"):
        stop = STOP_REASONS[subtype]
        if stop == "end_turn":
            stop = MODEL_STOPS.get(str(result.get("stop_reason")), stop)
        return _answer(stop, result)
    raise failure(result)


def failure(result: JsonObject) -> RpcError:
    """The error of a failed turn, worded for the user."""
    message = str(result.get("result") or "") or "; ".join(_errors(result)) or "it gave no reason"
    status = result.get("api_error_status")
    if message.startswith("No conversation found"):
        return session_not_found(str(result.get("session_id", "")))
    if status == 401 or any(sign in message for sign in LOGGED_OUT):
        return auth_required(message)
    reason = "api_error" if result.get("subtype") == "success" else str(result.get("subtype"))
    return internal(f"Claude Code could not finish the turn: {message}", reason, status=status)


def usage_update(result: JsonObject, context: JsonObject) -> JsonObject | None:
    """Context size and cost so far; `context` is the usage of the last request."""
    sizes = [int(model.get("contextWindow") or 0) for model in _models(result)]
    used = sum(int(context.get(name) or 0) for name in _CONTEXT)
    if not sizes or not max(sizes):
        return None
    update: JsonObject = {"sessionUpdate": "usage_update", "used": used, "size": max(sizes)}
    cost = result.get("total_cost_usd")
    if isinstance(cost, int | float):
        update["cost"] = {"amount": cost, "currency": "USD"}
    return update


_CONTEXT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


def _answer(stop: str, result: JsonObject) -> JsonObject:
    answer: JsonObject = {"stopReason": stop}
    usage = result.get("usage")
    if isinstance(usage, dict):
        count = {name: int(usage.get(name) or 0) for name in _CONTEXT}
        answer["usage"] = {
            "totalTokens": sum(count.values()),
            "inputTokens": count["input_tokens"],
            "outputTokens": count["output_tokens"],
            "cachedReadTokens": count["cache_read_input_tokens"],
            "cachedWriteTokens": count["cache_creation_input_tokens"],
        }
    return answer


def _errors(result: JsonObject) -> list[str]:
    errors = result.get("errors")
    return [str(error) for error in errors] if isinstance(errors, list) else []


def _models(result: JsonObject) -> list[JsonObject]:
    models = result.get("modelUsage")
    return [model for model in models.values() if isinstance(model, dict)] if isinstance(models, dict) else []
