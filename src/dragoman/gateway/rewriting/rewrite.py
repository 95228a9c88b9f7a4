"""Replaces session ids in requests, results and errors (G-043); all other values keep their bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Raw

from dragoman.gateway.json_types import JsonObject, as_object, decode_object, encode, own_meta, with_own_meta
from dragoman.gateway.rewriting import dialects
from dragoman.rpc.request import Reply
from dragoman.wire import message
from dragoman.wire.errors import NOT_FOUND, Malformed

_ESCAPED_LETTER = re.compile(rb"\\u00[4-7]")


def hides_letters(raw: bytes) -> bool:
    """Whether letters are escaped, as `\\u0073`, which may hide a member name from a byte search."""
    return b"\\u00" in raw and _ESCAPED_LETTER.search(raw) is not None


def one_session(params: bytes) -> bytes:
    """Params with one `sessionId` at most: of several the last stays, which is the one that the gateway uses.

    A receiver that prefers the first would otherwise take the message for another session's.
    """
    if params.count(b'"sessionId"') < 2 and not hides_letters(params):
        return params
    try:
        return encode(message.members(params))
    except Malformed:
        return params  # not an object, so it has no session id


def without_session(params: bytes) -> bytes:
    """Params without `sessionId`, for a message of no session: the id is the agent's own, or invented."""
    if b'"sessionId"' not in params:
        return params
    return encode({name: value for name, value in message.members(params).items() if name != "sessionId"})


def with_session(params: bytes, session_id: str) -> bytes:
    """The params with another session id."""
    return with_members(params, sessionId=session_id)


def with_own_params(line: bytes, **facts: object) -> bytes:
    """The message with these facts in `_meta.dragoman` of its params; those that the client gave stay."""
    envelope = message.members(line)
    params = message.members(envelope.get("params", Raw(message.EMPTY)))
    meta = {"_meta": decode_object(params["_meta"])} if "_meta" in params else {}
    own = with_own_meta(meta, **{**facts, **own_meta(meta)})
    return encode({**envelope, "params": Raw(encode({**params, **own}))})


def with_members(params: bytes, **changes: object) -> bytes:
    """The object with some members replaced."""
    members = message.members(params)
    for name, value in changes.items():
        members[name] = Raw(encode(value))
    return encode(members)


def session_of(params: bytes) -> str | None:
    """`params.sessionId` if there is one; params that are no object have none."""
    try:
        return session_in(message.members(params))
    except Malformed:
        return None


def session_in(members: Mapping[str, Raw]) -> str | None:
    """`sessionId` among the members of params."""
    raw = members.get("sessionId")
    if raw is None:
        return None
    key = message.id_key(raw)
    return key[1] if key is not None and isinstance(key[1], str) else None


def meta_of(params: bytes) -> JsonObject:
    """`params._meta`, empty if there is none."""
    try:
        return meta_in(message.members(params))
    except Malformed:
        return {}


def meta_in(members: Mapping[str, Raw]) -> JsonObject:
    """`_meta` among the members of params, empty if there is none."""
    raw = members.get("_meta")
    if raw is None:
        return {}
    try:
        return as_object(decode_object(raw))
    except Malformed:
        return {}


def reply_for_client(reply: Reply, agent_session_id: str, session_id: str) -> Reply:
    """An agent's answer with the client's session id in place of the agent's."""
    if reply.ok:
        return _result(reply, agent_session_id, session_id)
    return Reply(error=_error(reply.error, agent_session_id, session_id))


def _result(reply: Reply, agent_session_id: str, session_id: str) -> Reply:
    if b'"sessionId"' not in reply.result and not hides_letters(reply.result):
        return reply
    try:
        members = message.members(reply.result)
    except Malformed:
        return reply
    raw = members.get("sessionId")
    if raw is None or message.id_key(raw) != (str, agent_session_id):
        return Reply(result=one_session(reply.result))
    return Reply(result=encode({**members, "sessionId": session_id}))


def _error(raw: bytes, agent_session_id: str, session_id: str) -> bytes:
    """Replace `data.sessionId` in an error, and give "unknown session" its proper code (D-100)."""
    try:
        error = decode_object(raw)
    except Malformed:
        return raw
    data = error.get("data")
    if dialects.is_session_lost(error):
        return encode(_session_lost(error, session_id))
    if isinstance(data, dict) and data.get("sessionId") == agent_session_id:
        error["data"] = {**data, "sessionId": session_id}
        return encode(error)
    return encode(error) if raw.count(b'"sessionId"') > 1 or hides_letters(raw) else raw


def _session_lost(error: JsonObject, session_id: str) -> JsonObject:
    original = {"code": error.get("code"), "message": error.get("message"), "data": error.get("data")}
    data = {**as_object(error.get("data")), "sessionId": session_id, "original": original}
    return {"code": NOT_FOUND, "message": str(error.get("message")), "data": data}
