"""Lenient access to decoded JSON: a malformed optional value counts as absent (ACP schema)."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from dragoman.wire.errors import INVALID_PARAMS, Malformed

JsonObject = dict[str, Any]


def as_object(value: object) -> JsonObject:
    """The value if it is an object, else an empty object."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[JsonObject]:
    """The objects in a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def named_values(items: object) -> JsonObject:
    """ACP's list of `{name, value}` as an object."""
    return {str(item.get("name")): str(item.get("value", "")) for item in objects(items)}


def own_meta(holder: JsonObject) -> JsonObject:
    """`_meta.dragoman` of an object, Dragoman's own extension; empty if there is none."""
    return as_object(as_object(holder.get("_meta")).get("dragoman"))


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
