"""Lenient access to decoded JSON: a malformed optional value counts as absent (ACP schema)."""

from __future__ import annotations

from typing import Any

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
