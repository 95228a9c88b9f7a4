"""Reads an agent's answer to a prompt."""

from __future__ import annotations

from dragoman.gateway.json_types import JsonObject, decode_object, encode
from dragoman.gateway.rewriting import dialects
from dragoman.rpc.request import Reply
from dragoman.wire.errors import Malformed, RpcError, internal


def read_result(reply: Reply) -> tuple[Reply, JsonObject]:
    """The agent's answer to a prompt as the client gets it, and its decoded result or error."""
    try:
        result = decode_object(reply.result)
    except Malformed:
        return _failed(internal("The agent answered the prompt with something that is not an object"))
    if result.get("stopReason") == "error":  # from older agents; not a v1 stop reason (D-50)
        return _failed(internal("The agent ended the turn with an error", "agent_error", result=result))
    changed = dialects.read_stop_reason(result)
    return (reply, result) if changed is None else (Reply(result=encode(changed)), changed)


def _failed(error: RpcError) -> tuple[Reply, JsonObject]:
    raw = error.encode()
    return Reply(error=raw), decode_object(raw)
