"""Errors that an agent answers with."""

from __future__ import annotations

import logging

from dragoman.gateway.json_types import JsonObject, encode, read_object
from dragoman.log import without_secrets
from dragoman.rpc.request import Reply
from dragoman.wire.errors import METHOD_NOT_FOUND

log = logging.getLogger(__name__)


def log_refusal(agent: str, session: str | None, method: str, reply: Reply) -> None:
    """Log an error with its `data`: many agents answer "Internal error" and put the cause there."""
    error = read_object(reply.error)
    level = logging.DEBUG if error.get("code") == METHOD_NOT_FOUND else logging.INFO
    about = {} if session is None else {"session": session}
    facts = {**about, "agent": agent, "code": error.get("code"), "data": reason(error)}
    log.log(
        level, "the agent refused %s: %s", method, without_secrets(str(error.get("message"))), extra=facts
    )


def reason(error: JsonObject) -> str:
    """An error's `data` as one line, without secrets recognized by their names; empty if there is none."""
    data = error.get("data")
    if data is None:
        return ""
    return without_secrets(data if isinstance(data, str) else encode(data).decode())
