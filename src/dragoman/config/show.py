"""Shows the resolved configuration, each value with its origin, secrets masked."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.config.files import toml
from dragoman.config.load import DEFAULT, Loaded
from dragoman.config.schema import is_secret
from dragoman.masking import MASK, mask_setting, mask_words

KNOWN_AGENT = "known agent"


def as_data(loaded: Loaded, everything: bool = False) -> dict[str, Any]:
    """`{"config": ..., "origins": {"limits.max_sessions": "default", ...}}`."""
    tree = _visible(loaded, everything)
    origins = {".".join(path): loaded.origins.get(path, DEFAULT) for path in _leaves(tree, ())}
    return {"config": tree, "origins": origins, "warnings": loaded.warnings}


def as_toml(loaded: Loaded, everything: bool = False) -> str:
    """The configuration as valid TOML, with the origin of each value in a comment."""
    tree = _visible(loaded, everything)
    parts = ["\n".join(f"# warning: {warning}" for warning in loaded.warnings)] if loaded.warnings else []
    scalars = {key: each for key, each in tree.items() if not _is_table(each)}
    parts.append(_lines(scalars, (), loaded))
    for key, each in tree.items():
        if _is_table(each):
            parts += _tables(each, (key,), loaded)
    return "\n\n".join(part for part in parts if part) + "\n"


def _visible(loaded: Loaded, everything: bool) -> dict[str, Any]:
    tree = _masked(msgspec.to_builtins(loaded.config), ())
    assert isinstance(tree, dict)
    if not everything:
        tree["agents"] = {
            name: agent
            for name, agent in tree["agents"].items()
            if loaded.origin("agents", name) != KNOWN_AGENT
        }
    return tree


def _masked(item: Any, path: tuple[str, ...]) -> Any:
    if isinstance(item, dict):
        return {key: _masked(each, (*path, key)) for key, each in item.items() if each is not None}
    if isinstance(item, list) and item and all(isinstance(value, str) for value in item):
        return mask_words(item)
    if isinstance(item, list):
        return [_masked(value, path) for value in item]
    if isinstance(item, str):
        return MASK if is_secret(path) and item else mask_setting(item)
    return item


def _leaves(item: dict[str, Any], path: tuple[str, ...]) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for key, each in item.items():
        found += _leaves(each, (*path, key)) if isinstance(each, dict) else [(*path, key)]
    return found


def _is_table(item: Any) -> bool:
    return isinstance(item, dict) or (isinstance(item, list) and bool(item) and isinstance(item[0], dict))


def _tables(item: Any, path: tuple[str, ...], loaded: Loaded) -> list[str]:
    """The lines of `[a.b]` and of the tables below it; tables such as `env` are written inline."""
    name = ".".join(map(toml.key, path))
    if isinstance(item, list):
        origin = loaded.origin(*path)
        return [
            f"[[{name}]]  # {origin}\n" + "\n".join(_pair(key, each) for key, each in rule.items())
            for rule in item
        ]
    named = path in (("agents",), ("sandboxes",))
    inner = {key: each for key, each in item.items() if named or (isinstance(each, list) and _is_table(each))}
    own = _lines({key: each for key, each in item.items() if key not in inner}, path, loaded)
    parts = [f"[{name}]\n{own}"] if own else []
    for key, each in inner.items():
        parts += _tables(each, (*path, key), loaded)
    return parts


def _lines(items: dict[str, Any], path: tuple[str, ...], loaded: Loaded) -> str:
    return "\n".join(
        f"{_pair(key, each)}  # {loaded.origins.get((*path, key), DEFAULT)}" for key, each in items.items()
    )


def _pair(key: str, item: Any) -> str:
    return f"{toml.key(key)} = {toml.value(item)}"
