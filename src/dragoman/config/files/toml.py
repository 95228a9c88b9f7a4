"""Writing TOML; the standard library only reads it."""

from __future__ import annotations

import json
from typing import Any


def value(item: Any) -> str:
    """One value, on one line."""
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, (int, float)):
        return repr(item)
    if isinstance(item, str):
        return string(item)
    if isinstance(item, list):
        return "[" + ", ".join(value(part) for part in item) + "]"
    if isinstance(item, dict):
        if not item:
            return "{}"
        return "{ " + ", ".join(f"{key(name)} = {value(each)}" for name, each in item.items()) + " }"
    raise TypeError(f"TOML has no {type(item).__name__}")


def string(text: str) -> str:
    # JSON and TOML have the same escapes, but TOML also requires one for DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def key(name: str) -> str:
    bare = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name if bare else string(name)
