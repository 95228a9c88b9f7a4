"""Plain JSON values, for the few messages that are decoded."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from dragoman.wire.errors import INVALID_PARAMS, Malformed
from dragoman.wire.json_types import JsonObject, as_object

__all__ = ["JsonObject", "as_object", "decode_object", "encode", "own_meta", "read_object"]


def own_meta(holder: JsonObject) -> JsonObject:
    """`_meta.dragoman` of an object, Dragoman's own extension; empty if there is none."""
    return as_object(as_object(holder.get("_meta")).get("dragoman"))


def with_own_meta(holder: JsonObject, **facts: object) -> JsonObject:
    """The object with these facts added to its `_meta.dragoman`."""
    meta = as_object(holder.get("_meta"))
    return {**holder, "_meta": {**meta, "dragoman": {**own_meta(holder), **facts}}}


def decode_object(raw: bytes | Raw) -> JsonObject:
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(INVALID_PARAMS, f"Invalid params: {error}") from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Malformed(INVALID_PARAMS, "Invalid params: expected an object")
    return value


def read_object(raw: bytes | Raw) -> JsonObject:
    """As `decode_object` for a peer's answer, but any value that is not an object counts as an empty one."""
    try:
        return decode_object(raw)
    except Malformed:
        return {}


encode = msgspec.json.encode
