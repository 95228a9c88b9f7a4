"""Failures of a model, explained to the user, and whether a retry may help."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelRateLimitError,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
)

from dragoman.masking import mask

MAX_MESSAGE = 1000
"""Characters shown of a provider's error message."""


class ModelFailed(Exception):
    """The model gave no answer; the message is for the user."""

    def __init__(
        self, message: str, reason: str, *, retry: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(mask(message))  # it may quote the server's address
        self.reason = reason
        self.retry = retry
        self.retry_after = retry_after


_REASONS: Sequence[tuple[type[Exception], str, str, bool]] = (
    (
        ModelAuthenticationError,
        "model_auth",
        "{name}: the key is wrong or may not use this model ({status}).",
        False,
    ),
    (
        ModelNotFoundError,
        "model_unknown",
        "{name}: there is no such model, or the address is wrong ({status}).",
        False,
    ),
    (
        ModelContextWindowExceededError,
        "context_full",
        "{name}: the conversation is longer than it can hold.",
        False,
    ),
    (ModelRateLimitError, "model_rate_limit", "{name} asks for a pause ({status}).", True),
    (ModelOverloadedError, "model_overloaded", "{name} is overloaded ({status}).", True),
    (ModelUnavailableError, "model_unavailable", "{name} is not available now ({status}).", True),
    (ModelServerError, "model_server", "{name} has trouble of its own ({status}).", True),
    (ModelTimeoutError, "model_timeout", "{name} did not answer in time.", True),
    (ModelConnectionError, "model_unreachable", "{name} cannot be reached: {detail}", True),
)
"""Error class, reason, message, and whether a retry may help; the first class that matches counts."""


def explain(error: Exception, name: str) -> ModelFailed:
    status = f"HTTP {error.status_code}" if isinstance(error, ModelHTTPError) else "no status"
    detail = _detail(error)
    after = error.retry_after if isinstance(error, ModelAPIError) else None
    for kind, reason, words, retry in _REASONS:
        if isinstance(error, kind):
            text = words.format(name=name, status=status, detail=detail)
            if detail and "{detail}" not in words:
                text += f" {detail}"
            return ModelFailed(plain(text), reason, retry=retry, retry_after=after)
    # An error without a status is a failed connection, such as a truncated stream.
    retry = isinstance(error, ModelAPIError) and (
        not isinstance(error, ModelHTTPError) or error.in_stream or error.status_code >= 500
    )
    return ModelFailed(
        plain(f"{name} failed: {detail or error}"), "model_failed", retry=retry, retry_after=after
    )


def _detail(error: Exception) -> str:
    """The provider's own error message."""
    body = getattr(error, "body", None)
    if isinstance(body, dict):
        inner = body.get("error", body)
        said = inner.get("message") if isinstance(inner, dict) else inner
        if isinstance(said, str):
            return said
    return "" if isinstance(error, ModelHTTPError) else str(error)


def plain(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + "…"
