"""Plain JSON values, for the few messages that are decoded."""

from __future__ import annotations

import msgspec

from dragoman.wire.json_types import JsonObject, as_object, decode_object, own_meta, read_object

__all__ = ["JsonObject", "as_object", "decode_object", "encode", "own_meta", "read_object"]


def with_own_meta(holder: JsonObject, **facts: object) -> JsonObject:
    """The object with these facts added to its `_meta.dragoman`."""
    meta = as_object(holder.get("_meta"))
    return {**holder, "_meta": {**meta, "dragoman": {**own_meta(holder), **facts}}}


encode = msgspec.json.encode
