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
"""Translates some fields of an object in place and tells whether any changed."""


def asked(method: str, params: bytes, translation: Translation) -> bytes:
    """The params of a request with its paths on the other side."""
    walk = _ASKED.get(method)
    if walk is None or (
        method in _URIS_ONLY and FILE_URI not in params
    ):  # a prompt may hold megabytes of images
        return params
    return _rewritten(walk, params, translation)


def answered(method: str, result: bytes, translation: Translation) -> bytes:
    """The result of a request with its paths on the other side."""
    walk = _ANSWERED.get(method)
    return result if walk is None else _rewritten(walk, result, translation)


def updated(update: JsonObject, translation: Translation) -> bool:
    """Translate the paths of an update in place; True if any changed."""
    kind = update.get("sessionUpdate")
    walk = _UPDATES.get(kind) if isinstance(kind, str) else None
    return walk is not None and walk(update, translation)


def _rewritten(walk: _Walk, raw: bytes, translation: Translation) -> bytes:
    try:
        value = decode_object(raw)
    except Malformed:  # the other side says what is wrong with it
        return raw
    return encode(value) if walk(value, translation) else raw


def _compile(fields: Fields) -> _Walk:
    """One walk over all fields, so that every list is gone through once."""
    below: dict[str, list[str]] = {}
    for field in fields:
        step, _, rest = field.partition(".")
        below.setdefault(step, []).append(rest)
    return _all([_step(step, tuple(rests)) for step, rests in below.items()])


def _step(step: str, rests: Fields) -> _Walk:
    name, every = step.removesuffix("[]"), step.endswith("[]")
    if rests == ("",):
        return _entries(name) if every else _member(name)
    return _objects(name, _compile(rests)) if every else _object(name, _compile(rests))


def _all(walks: Sequence[_Walk]) -> _Walk:
    if len(walks) == 1:
        return walks[0]

    def walk(value: Any, translation: Translation) -> bool:
        changed = False
        for each in walks:
            if each(value, translation):
                changed = True
        return changed

    return walk


def _objects(name: str, inner: _Walk) -> _Walk:
    def walk(value: Any, translation: Translation) -> bool:
        entries = value.get(name)
        changed = False
        if isinstance(entries, list):
            for entry in entries:
                if isinstance(entry, dict) and inner(entry, translation):
                    changed = True
        return changed

    return walk


def _object(name: str, inner: _Walk) -> _Walk:
    def walk(value: Any, translation: Translation) -> bool:
        member = value.get(name)
        return isinstance(member, dict) and inner(member, translation)

    return walk


def _member(name: str) -> _Walk:
    is_uri = name == "uri"

    def walk(value: Any, translation: Translation) -> bool:
        old = value.get(name)
        if not isinstance(old, str):
            return False
        new = translation.uri(old) if is_uri else translation.path(old)
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


def _compiled(table: Mapping[str, Fields]) -> dict[str, _Walk]:
    return {name: _compile(fields) for name, fields in table.items()}


_ASKED, _ANSWERED, _UPDATES = map(_compiled, (ASKED, ANSWERED, UPDATES))
_URIS_ONLY = frozenset(
    method for method, fields in ASKED.items() if all(field.endswith("uri") for field in fields)
)
