"""Logs requests that an agent answered with an error."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dragoman.gateway.json_types import JsonObject, encode, read_object
from dragoman.gateway.rewriting.rewrite import session_of
from dragoman.log import without_secrets
from dragoman.rpc.request import Reply
from dragoman.wire.errors import METHOD_NOT_FOUND

if TYPE_CHECKING:
    from dragoman.gateway.agent import AgentConnection

log = logging.getLogger(__name__)


def log_refusal(agent: AgentConnection, method: str, params: bytes, reply: Reply) -> None:
    """Log an error with its `data`: many agents answer "Internal error" and put the cause there."""
    error = read_object(reply.error)
    level = logging.DEBUG if error.get("code") == METHOD_NOT_FOUND else logging.INFO
    session = agent.sessions.get(session_of(params) or "")
    about = {} if session is None else {"session": session.id}
    facts = {**about, "agent": agent.name, "code": error.get("code"), "data": reason(error)}
    log.log(
        level, "the agent refused %s: %s", method, without_secrets(str(error.get("message"))), extra=facts
    )


def reason(error: JsonObject) -> str:
    """An error's `data` as one line, without secrets recognized by their names; empty if there is none."""
    data = error.get("data")
    if data is None:
        return ""
    return without_secrets(data if isinstance(data, str) else encode(data).decode())
