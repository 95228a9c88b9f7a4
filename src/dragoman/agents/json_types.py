"""Lenient access to JSON values in the agents' own protocols: a value of another type counts as absent."""

from __future__ import annotations

from typing import Any

JsonObject = dict[str, Any]


def as_object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[JsonObject]:
    """The objects in a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def named_values(items: object) -> JsonObject:
    """ACP's list of `{name, value}` as an object."""
    return {str(item.get("name")): str(item.get("value", "")) for item in objects(items)}
