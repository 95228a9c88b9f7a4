"""`_meta.dragoman` and methods `_dragoman/…` are reserved for processes of Dragoman.

Clients, pages and other processes of Dragoman trust these members: the number of an event, the id of a question, the
end of a turn, a notice. An agent that wrote them could answer one question with the consent to another, or end a
running turn. So they are removed where an agent's messages arrive, in every place where they are read: in `_meta` of
params and results, of an update (also of the tool call or the plan that older forms nest in it), of a question's tool
call and of its options.

Agents that are part of Dragoman may use them: `OURS`.
"""

from __future__ import annotations

import re

from msgspec import Raw

from dragoman.gateway.json_types import encode
from dragoman.wire import message
from dragoman.wire.errors import Malformed

OURS = frozenset({"builtin", "claude", "codex"})
"""Kinds of agents whose messages Dragoman itself writes."""
KEY = "dragoman"
METHODS = "_dragoman/"

_EACH = "[]"
_TOOL_CALL: dict[str, object] = {"toolCall": {}}
_BELOW: dict[str, object] = {
    "params": {"update": {**_TOOL_CALL, "plan": {}}, "toolCall": _TOOL_CALL, "options": {_EACH: {}}},
    "result": {},
}
"""Objects in a message that may have `_meta`; `_EACH` is every entry of a list."""

_MAYBE = re.compile(rb"dragoman|\\u00[67]")
"""A line without a match cannot have the key, not even with escaped letters."""


def is_reserved(method: str) -> bool:
    return method.startswith(METHODS)


def cleaned(line: bytes) -> bytes:
    """Any message, or a batch, without reserved members; the same object if there are none."""
    if not _MAYBE.search(line):
        return line
    try:
        if message.is_batch(line):
            entries = message.decode_batch(line)
            found = [cleaned(entry) for entry in entries]
            return line if found == entries else b"[" + b",".join(found) + b"]"
        without = _without(line, _BELOW)
        # `without` has only the last of duplicate members: a client may prefer the first.
        return without if _marks(without) < _marks(line) else line
    except Malformed:
        return line  # reported by the code that decodes it


def _marks(line: bytes) -> int:
    return len(_MAYBE.findall(line))


def _without(raw: bytes | Raw, below: dict[str, object]) -> bytes:
    """An object, each member once, without our key in its `_meta` and those below; any other value unchanged."""
    try:
        members = message.members(raw)
    except Malformed:
        return bytes(raw)
    _drop(members)
    for name, deeper in below.items():
        if name in members and isinstance(deeper, dict):
            write = _without_each if _EACH in deeper else _without
            members[name] = Raw(write(members[name], deeper))
    return encode(members)


def _without_each(raw: Raw, below: dict[str, object]) -> bytes:
    inner = below[_EACH]
    assert isinstance(inner, dict)
    try:
        entries = message.decode_batch(bytes(raw))
    except Malformed:
        return bytes(raw)
    return encode([Raw(_without(entry, inner)) for entry in entries])


def _drop(members: dict[str, Raw]) -> None:
    if "_meta" not in members:
        return
    try:
        meta = message.members(members["_meta"])
    except Malformed:
        return
    if meta.pop(KEY, None) is not None and not meta:
        del members["_meta"]
    else:
        members["_meta"] = Raw(encode(meta))
