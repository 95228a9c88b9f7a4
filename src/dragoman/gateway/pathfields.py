"""Which members of which messages hold paths (G-151), and their translation.

Nothing else is touched: not text, `rawInput`, `rawOutput`, `_meta`, environment values or a terminal's command. A
member called `uri` holds a `file://` URI, every other one a path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dragoman.gateway.json_types import JsonObject, decode_object, encode
from dragoman.gateway.paths import Translation
from dragoman.wire.errors import Malformed

Fields = tuple[str, ...]
"""Members by their way from the top: `a.b` is a member of a member, `a[]` every entry of a list."""

_MCP: Fields = ("mcpServers[].command", "mcpServers[].args[]")
_SETUP: Fields = ("cwd", "additionalDirectories[]", *_MCP)
_TOOL: Fields = (
    "locations[].path",
    "content[].path",  # a diff
    "content[].content.uri",
    "content[].content.resource.uri",
)
_CHUNK: Fields = ("content.uri", "content.resource.uri")

ASKED: Mapping[str, Fields] = {
    # the params of requests, in either direction
    "session/new": _SETUP,
    "session/load": _SETUP,
    "session/resume": _SETUP,
    "session/fork": _SETUP,
    "session/list": ("cwd",),
    "session/prompt": ("prompt[].uri", "prompt[].resource.uri"),
    "session/request_permission": tuple(f"toolCall.{field}" for field in _TOOL),
    "fs/read_text_file": ("path",),
    "fs/write_text_file": ("path",),
    "terminal/create": ("cwd",),
}
ANSWERED: Mapping[str, Fields] = {
    # results of an agent
    "session/list": ("sessions[].cwd", "sessions[].additionalDirectories[]"),
}
UPDATES: Mapping[str, Fields] = {
    # by `sessionUpdate`
    "tool_call": _TOOL,
    "tool_call_update": _TOOL,
    "user_message_chunk": _CHUNK,
    "agent_message_chunk": _CHUNK,
    "agent_thought_chunk": _CHUNK,
}

FILE_URI = b"file:"
"""What a message chunk must contain to be worth decoding: it holds no paths but in `file://` URIs."""

_Walk = Callable[[Any, Translation], bool]


def asked(method: str, params: bytes, translation: Translation) -> bytes:
    """The params of a request with its paths on the other side."""
    walks = _ASKED.get(method)
    if walks is None or (
        method in _URIS_ONLY and FILE_URI not in params
    ):  # a prompt may hold megabytes of images
        return params
    return _rewritten(walks, params, translation)


def answered(method: str, result: bytes, translation: Translation) -> bytes:
    """The result of a request with its paths on the other side."""
    walks = _ANSWERED.get(method)
    return result if walks is None else _rewritten(walks, result, translation)


def updated(update: JsonObject, translation: Translation) -> bool:
    """Translate the paths of an update in place; True if any changed."""
    kind = update.get("sessionUpdate")
    walks = _UPDATES.get(kind) if isinstance(kind, str) else None
    return walks is not None and _walk(walks, update, translation)


def _rewritten(walks: Sequence[_Walk], raw: bytes, translation: Translation) -> bytes:
    try:
        value = decode_object(raw)
    except Malformed:  # the other side says what is wrong with it
        return raw
    return encode(value) if _walk(walks, value, translation) else raw


def _walk(walks: Sequence[_Walk], value: JsonObject, translation: Translation) -> bool:
    return sum(walk(value, translation) for walk in walks) > 0  # not `any`: every walk is to be taken


def _compile(field: str) -> _Walk:
    """A function that translates one field of an object in place and tells whether it changed."""
    step, _, rest = field.partition(".")
    name = step.removesuffix("[]")
    if rest:
        return _below(name, _compile(rest), every=step.endswith("[]"))
    return _entries(name) if step.endswith("[]") else _member(name)


def _below(name: str, walk: _Walk, *, every: bool) -> _Walk:
    def walk_entries(value: Any, translation: Translation) -> bool:
        entries = value.get(name)
        if not isinstance(entries, list):
            return False
        return sum(walk(entry, translation) for entry in entries if isinstance(entry, dict)) > 0

    def walk_object(value: Any, translation: Translation) -> bool:
        inner = value.get(name)
        return isinstance(inner, dict) and walk(inner, translation)

    return walk_entries if every else walk_object


def _member(name: str) -> _Walk:
    translate = Translation.uri if name == "uri" else Translation.path

    def walk(value: Any, translation: Translation) -> bool:
        old = value.get(name)
        if not isinstance(old, str):
            return False
        new = translate(translation, old)
        if new == old:
            return False
        value[name] = new
        return True

    return walk


def _entries(name: str) -> _Walk:
    def walk(value: Any, translation: Translation) -> bool:
        old = value.get(name)
        if not isinstance(old, list):
            return False
        new = [translation.path(entry) if isinstance(entry, str) else entry for entry in old]
        value[name] = new
        return new != old

    return walk


def _compiled(table: Mapping[str, Fields]) -> dict[str, tuple[_Walk, ...]]:
    return {name: tuple(map(_compile, fields)) for name, fields in table.items()}


_ASKED, _ANSWERED, _UPDATES = map(_compiled, (ASKED, ANSWERED, UPDATES))
_URIS_ONLY = frozenset(
    method for method, fields in ASKED.items() if all(field.endswith("uri") for field in fields)
)
