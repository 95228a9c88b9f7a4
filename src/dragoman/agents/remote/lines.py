"""Changes to single messages to and from a server: ids, `_meta`, and update numbers."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Raw

from dragoman.wire import message
from dragoman.wire.errors import internal
from dragoman.wire.message import ABSENT, lenient_members

JsonObject = dict[str, Any]

_SEQ_ALONE = re.compile(rb'\{"dragoman":\{"seq":(\d+)\}\}')
_SETUP_FIELDS = ("cwd", "mcpServers", "additionalDirectories")


def end_of_turn(id: bytes, facts: JsonObject) -> bytes:
    """The answer to a prompt that was lost with its connection, from the update about the end of the turn."""
    if facts.get("stopReason") is not None:
        return message.response(id, msgspec.json.encode({"stopReason": facts["stopReason"]}))
    if isinstance(facts.get("error"), dict):
        return message.failure(id, msgspec.json.encode(facts["error"]))
    error = internal("The gateway behind was restarted during this turn; prompt again", "interrupted")
    return message.failure(id, error.encode())


def wants_seq(params: dict[str, Raw]) -> bool:
    """Whether this `initialize` already asks for the numbers of updates."""
    capabilities = lenient_members(params.get("clientCapabilities", Raw(b"{}")))
    meta = capabilities.get("_meta")
    return bool(meta is not None and dragoman_facts(lenient_value(meta)).get("seq"))


def with_seq_wanted(line: bytes, params: dict[str, Raw]) -> bytes:
    """`initialize` with a request for the numbers of updates, which other servers than Dragoman ignore."""
    capabilities = lenient_members(params.get("clientCapabilities", Raw(b"{}")))
    meta = lenient_members(capabilities.get("_meta", Raw(b"{}")))
    asked = lenient_members(meta.get("dragoman", Raw(b"{}")))
    meta["dragoman"] = Raw(msgspec.json.encode({**asked, "seq": True}))
    capabilities["_meta"] = Raw(msgspec.json.encode(meta))
    told = {**params, "clientCapabilities": capabilities}
    return msgspec.json.encode({**message.members(line), "params": told})


def with_dragoman(line: bytes, params: dict[str, Raw], **facts: object) -> bytes:
    meta = lenient_members(params.get("_meta", Raw(b"{}")))
    return msgspec.json.encode(
        {**message.members(line), "params": {**params, "_meta": {**meta, "dragoman": facts}}}
    )


def without_seq(line: bytes, meta: Raw) -> tuple[int | None, bytes]:
    """The number of an update, and the update without it: it belongs to the server's journal, not to ours."""
    raw = bytes(meta)
    alone = _SEQ_ALONE.fullmatch(raw)
    if alone is not None:
        tail = b',"_meta":%b}}' % raw
        if line.endswith(tail):
            return int(alone[1]), line[: -len(tail)] + b"}}"
    decoded = lenient_value(raw)
    facts = dragoman_facts(decoded)
    seq = facts.pop("seq", None)
    if not isinstance(seq, int) or not isinstance(decoded, dict):
        return None, line
    envelope = message.members(line)
    params = message.members(envelope["params"])
    rest = {**decoded, "dragoman": facts} if facts else {k: v for k, v in decoded.items() if k != "dragoman"}
    params.pop("_meta")
    shown = {**params, "_meta": rest} if rest else params
    return seq, msgspec.json.encode({**envelope, "params": shown})


def own_position(params: dict[str, Raw]) -> int | None:
    """The `_meta.dragoman.afterSeq` of a request, if it has one."""
    meta = params.get("_meta")
    after = dragoman_facts(lenient_value(meta)).get("afterSeq") if meta is not None else None
    return after if isinstance(after, int) else None


def with_id(line: bytes, id: bytes) -> bytes:
    return msgspec.json.encode({**message.members(line), "id": Raw(id)})


def setup_fields(params: dict[str, Raw]) -> dict[str, Raw]:
    return {name: params[name] for name in _SETUP_FIELDS if name in params}


def lenient_value(raw: Raw | bytes) -> object:
    """A value that a server sent; None if Python cannot represent it, such as 1e400."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def meta_of(result: Raw) -> object:
    raw = lenient_members(result).get("_meta") if result is not ABSENT else None
    return lenient_value(raw) if raw is not None else None


def dragoman_facts(meta: object) -> JsonObject:
    found = meta.get("dragoman") if isinstance(meta, dict) else None
    return dict(found) if isinstance(found, dict) else {}


def text_of(raw: Raw | None) -> str | None:
    if raw is None:
        return None
    value = lenient_value(raw)
    return value if isinstance(value, str) else None
