"""Tables of the members of messages that have paths (G-151), and their translation.

The whole value of a member is a path or a `file:` URI. Nothing else is changed: not text, `rawInput`, `rawOutput`,
`_meta`, environment values or a terminal's command. Errors are the exception: message and data are searched for paths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dragoman.gateway.json_types import JsonObject, decode_object, encode, read_object
from dragoman.gateway.path_mapping.paths import Translation
from dragoman.wire import message
from dragoman.wire.errors import INTERNAL_ERROR, Malformed

Fields = tuple[str, ...]
"""Paths of members from the top: `a.b` is a member of a member, `a[]` every entry of a list, `a.**` all below."""

_MCP: Fields = ("mcpServers[].command", "mcpServers[].args[]")
_SETUP: Fields = ("cwd", "additionalDirectories[]", *_MCP)
_TOOL: Fields = (
    "locations[].path",
    "content[].path",  # a diff
    "content[].content.uri",
    "content[].content.resource.uri",
)
_CHUNK: Fields = ("content.uri", "content.resource.uri")
_QUESTION: Fields = (
    *_TOOL,
    *(
        "content[].uri",
        "content[].resource.uri",
    ),  # a bare block; below, a nested call: dialects are converted later
    *(f"toolCall.{field}" for field in _TOOL),
)
_SUGGEST: Fields = (
    "uri",
    *(
        f"context.{name}[].uri"
        for name in (
            *("recentFiles", "relatedSnippets", "editHistory"),
            *("userActions", "openFiles", "diagnostics"),
        )
    ),
)

ASKED: Mapping[str, Fields] = {
    # the params of requests and notifications, in either direction
    "session/new": _SETUP,
    "session/load": _SETUP,
    "session/resume": _SETUP,
    "session/fork": _SETUP,
    "session/list": ("cwd",),
    "session/prompt": ("prompt[].uri", "prompt[].resource.uri"),
    "session/request_permission": tuple(f"toolCall.{field}" for field in _QUESTION),
    "elicitation/create": ("requestedSchema.properties.**",),  # values to choose from, and defaults
    "fs/read_text_file": ("path",),
    "fs/write_text_file": ("path",),
    "terminal/create": ("cwd",),
    "nes/start": ("workspaceUri", "workspaceFolders[].uri"),
    "nes/suggest": _SUGGEST,
    **{f"document/did{what}": ("uri",) for what in ("Open", "Change", "Close", "Save", "Focus")},
}
ANSWERED: Mapping[str, Fields] = {
    # results, in either direction
    "session/list": ("sessions[].cwd", "sessions[].additionalDirectories[]"),
    "elicitation/create": ("content.**",),
    "nes/suggest": ("suggestions[].uri",),
}
UPDATES: Mapping[str, Fields] = {
    # by `sessionUpdate`
    "tool_call": _TOOL,
    "tool_call_update": _TOOL,
    "user_message_chunk": _CHUNK,
    "agent_message_chunk": _CHUNK,
    "agent_thought_chunk": _CHUNK,
    "compaction_summary_chunk": _CHUNK,
    "plan_update": ("plan.uri",),
}

URI_MEMBER = b'"uri"'
"""A message chunk is decoded only if it has this: it has no paths anywhere else."""

MAX_ERROR_BYTES = 256 * 1024
"""The largest error that is searched for paths; a search takes 25 ms, and all clients wait meanwhile."""
MAX_MESSAGE = 16 * 1024
"""Length to which the message of a larger error is cut."""

_Walk = Callable[[Any, Translation], bool]
"""A function that translates some fields of an object in place and returns whether any changed."""


def translate_params(method: str, params: bytes, translation: Translation) -> bytes:
    """The params of a request with translated paths."""
    walk = _ASKED.get(method)
    # A prompt may hold megabytes of images.
    if walk is None or (method in _URIS_ONLY and URI_MEMBER not in params):
        return params
    return _rewritten(walk, params, translation)


def translate_result(method: str, result: bytes, translation: Translation) -> bytes:
    """The result of a request with translated paths."""
    walk = _ANSWERED.get(method)
    return result if walk is None else _rewritten(walk, result, translation)


def translate_error(error: bytes, translation: Translation) -> bytes:
    """An error with the paths in its message and its data translated."""
    if len(error) > MAX_ERROR_BYTES:
        return error
    try:
        value = decode_object(error)
        told: JsonObject = {
            name: _translate_strings(value[name], translation)
            for name in ("message", "data")
            if name in value
        }
    except (Malformed, RecursionError):  # such as a number that Python cannot hold: passed on as it is
        return error
    if all(value[name] == new for name, new in told.items()):
        return error
    return encode(message.members(error) | told)  # the code and unknown members are unchanged


def shortened(error: bytes) -> bytes:
    """An error small enough to be searched: a larger one is cut to its code and the start of its message."""
    if len(error) <= MAX_ERROR_BYTES:
        return error
    value = read_object(error)
    code, text = value.get("code"), str(value.get("message", ""))[:MAX_MESSAGE]
    return encode({"code": code if isinstance(code, int) else INTERNAL_ERROR, "message": f"{text}…"})


def translate_update(update: JsonObject, translation: Translation) -> bool:
    """Translate the paths of an update in place; True if any changed."""
    kind = update.get("sessionUpdate")
    walk = _UPDATES.get(kind) if isinstance(kind, str) else None
    return walk is not None and walk(update, translation)


def _translate_strings(value: Any, translation: Translation) -> Any:
    """A copy with the paths in every string translated, in names of members too."""
    if isinstance(value, str):
        return translation.text(value)
    if isinstance(value, list):
        return [_translate_strings(entry, translation) for entry in value]
    if isinstance(value, dict):
        return {
            translation.text(name): _translate_strings(entry, translation) for name, entry in value.items()
        }
    return value


def _rewritten(walk: _Walk, raw: bytes, translation: Translation) -> bytes:
    try:
        value = decode_object(raw)
    except Malformed:  # the receiver reports what is wrong
        return raw
    return encode(value) if walk(value, translation) else raw


def _compile(fields: Fields) -> _Walk:
    """One walk over all fields, so that every list is iterated once."""
    below: dict[str, list[str]] = {}
    for field in fields:
        step, _, rest = field.partition(".")
        below.setdefault(step, []).append(rest)
    return _all([_step(step, tuple(rests)) for step, rests in below.items()])


def _step(step: str, rests: Fields) -> _Walk:
    name, every = step.removesuffix("[]"), step.endswith("[]")
    if rests == ("**",):
        return _everything(name)
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


def _everything(name: str) -> _Walk:
    def walk(value: Any, translation: Translation) -> bool:
        if name not in value:
            return False
        old = value[name]
        try:
            new = _each_value(old, translation)
        except RecursionError:
            return False
        value[name] = new
        return bool(new != old)

    return walk


def _each_value(value: Any, translation: Translation) -> Any:
    """A copy in which every string that is a path is translated."""
    if isinstance(value, str):
        return translation.value(value)
    if isinstance(value, list):
        return [_each_value(entry, translation) for entry in value]
    if isinstance(value, dict):
        return {name: _each_value(entry, translation) for name, entry in value.items()}
    return value


def _member(name: str) -> _Walk:
    def walk(value: Any, translation: Translation) -> bool:
        old = value.get(name)
        if not isinstance(old, str):
            return False
        new = translation.value(old)
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
        new = [translation.value(entry) if isinstance(entry, str) else entry for entry in old]
        value[name] = new
        return new != old

    return walk


def _compiled(table: Mapping[str, Fields]) -> dict[str, _Walk]:
    return {name: _compile(fields) for name, fields in table.items()}


_ASKED, _ANSWERED, _UPDATES = map(_compiled, (ASKED, ANSWERED, UPDATES))
_URIS_ONLY = frozenset(
    method for method, fields in ASKED.items() if all(field.rpartition(".")[2] == "uri" for field in fields)
)
