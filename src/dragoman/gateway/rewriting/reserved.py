"""`_meta.dragoman` and methods `_dragoman/…` are reserved: only processes of ours write them.

Clients, pages and other processes of ours believe what stands there: the number of an event, the name of a question, the
end of a turn, a notice. An agent that could write it would answer one question with the consent to another, or end a
turn that runs. So it is removed where an agent's messages enter, in every place where it is read: in `_meta` of params
and results, of an update (also of the tool call or the plan that older shapes nest in it), of a question's tool call and
of its options.

Agents that are part of Dragoman mark what they say there and keep it: `OURS`.
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
"""Where `_meta` stands in a message; `_EACH` is every entry of a list."""

_MAYBE = re.compile(rb"dragoman|\\u00[67]")
"""A line without it cannot hold the key, not even with escaped letters."""


def is_reserved(method: str) -> bool:
    return method.startswith(METHODS)


def cleaned(line: bytes) -> bytes:
    """Any message, or a batch of them, without what is reserved; the same bytes if there is nothing of it."""
    if not _MAYBE.search(line):
        return line
    try:
        if message.is_batch(line):
            entries = message.decode_batch(line)
            found = [cleaned(entry) for entry in entries]
            return line if found == entries else b"[" + b",".join(found) + b"]"
        without = _without(line, _BELOW)
        # Of a member that comes twice only the last is in it: a client may prefer the first.
        return without if _marks(without) < _marks(line) else line
    except Malformed:
        return line  # the code that reads it says what is wrong with it


def _marks(line: bytes) -> int:
    return len(_MAYBE.findall(line))


def _without(raw: bytes | Raw, below: dict[str, object]) -> bytes:
    """An object, each member once, without our key in its `_meta`, nor in those below; anything else as it is."""
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
