"""Describes the configuration model: its keys, their types in words, and the problems of a value.

Imported only to explain an error, to read the environment and to write documentation.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import NODEFAULT, inspect

from dragoman.masking import mask_setting

KeyPath = tuple[str, ...]

SECRET_TABLES = frozenset({"env", "headers"})
SECRET_KEYS = frozenset({"token", "auth_token", "password"})


@dataclass(frozen=True, slots=True)
class Key:
    """One field of a Struct."""

    name: str
    type: inspect.Type
    description: str
    default: Any
    required: bool


@dataclass(frozen=True, slots=True)
class Problem:
    """One invalid value: its path and the error text."""

    path: KeyPath
    text: str


def struct_of(model: type) -> inspect.StructType:
    described = bare(inspect.type_info(model))
    assert isinstance(described, inspect.StructType)
    return described


def bare(described: inspect.Type) -> inspect.Type:
    """The type without its description, and without `None`, which TOML cannot write."""
    if isinstance(described, inspect.Metadata):
        return bare(described.type)
    if isinstance(described, inspect.UnionType):
        rest = [member for member in described.types if not isinstance(member, inspect.NoneType)]
        return bare(rest[0]) if len(rest) == 1 else described
    return described


def keys(struct: inspect.StructType) -> list[Key]:
    return [_key(field) for field in struct.fields]


def keys_at(struct: inspect.StructType, path: Sequence[str]) -> list[str] | None:
    """The names of the keys in the table at `path`; None if any name may be there, [] if it is no table."""
    described: inspect.Type = struct
    for part in path:
        if isinstance(described, inspect.DictType):
            described = bare(described.value_type)
        elif isinstance(described, inspect.StructType):
            described = next((key.type for key in keys(described) if key.name == part), described)
        else:
            return []
    if isinstance(described, inspect.StructType):
        return [key.name for key in keys(described)]
    return None if isinstance(described, inspect.DictType) else []


def _key(each: inspect.Field) -> Key:
    meta = each.type.extra_json_schema if isinstance(each.type, inspect.Metadata) else None
    default = each.default
    if each.default_factory is not NODEFAULT:
        default = each.default_factory()
    return Key(each.encode_name, bare(each.type), (meta or {}).get("description", ""), default, each.required)


def words(described: inspect.Type) -> str:
    """The type in words, for error messages and documentation."""
    if isinstance(described, inspect.LiteralType):
        return "one of " + ", ".join(f'"{value}"' for value in described.values)
    if isinstance(described, inspect.ListType):
        if isinstance(inner := bare(described.item_type), inspect.ListType):
            return "a list of lists of words"
        if isinstance(inner, inspect.UnionType):  # the words of a rule's `command`
            return 'a list of words, such as ["git", "status"]'
        return f"a list of {_PLURALS.get(type(inner), 'tables')}"
    if isinstance(described, inspect.DictType):
        inner = bare(described.value_type)
        return "a table of tables" if isinstance(inner, inspect.StructType) else "a table of strings"
    if isinstance(described, (inspect.IntType, inspect.FloatType)):
        return _SINGULARS[type(described)] + _bounds(described)
    return _SINGULARS.get(type(described), "a value of another type")


_SINGULARS: dict[type, str] = {
    inspect.IntType: "an integer",
    inspect.FloatType: "a number",
    inspect.BoolType: "true or false",
    inspect.StrType: "a string",
    inspect.StructType: "a table",
}
_PLURALS: dict[type, str] = {inspect.StrType: "strings", inspect.StructType: "tables"}


def _bounds(number: inspect.IntType | inspect.FloatType) -> str:
    if number.ge is not None and number.le is not None:
        return f" from {number.ge} to {number.le}"
    if number.ge is not None:
        return f" of at least {number.ge}"
    if number.gt is not None:
        return f" above {number.gt}"
    return ""


def problems(value: Any, described: inspect.Type, path: KeyPath = ()) -> Iterator[Problem]:
    """All problems of `value`, in the order of the file."""
    described = bare(described)
    if isinstance(described, inspect.StructType) and isinstance(value, dict):
        yield from _struct_problems(value, described, path)
    elif isinstance(described, inspect.DictType) and isinstance(value, dict):
        for name, item in value.items():
            yield from problems(item, described.value_type, (*path, name))
    elif isinstance(described, inspect.ListType) and isinstance(value, list):
        for index, item in enumerate(value):
            yield from problems(item, described.item_type, (*path, f"[{index}]"))
    elif isinstance(described, inspect.UnionType) and isinstance(value, list):
        lists = [member for member in described.types if isinstance(member, inspect.ListType)]
        for member in lists:
            yield from problems(value, member, path)
    elif not _fits(value, described):
        yield Problem(
            path, f"expected {words(described)}, got {_got(value, path)}{_choice_hint(value, described)}"
        )


def _struct_problems(value: dict[str, Any], struct: inspect.StructType, path: KeyPath) -> Iterator[Problem]:
    known = {key.name: key for key in keys(struct)}
    for name, item in value.items():
        if name in known:
            yield from problems(item, known[name].type, (*path, name))
        else:
            yield Problem((*path, name), f"there is no such key{suggest(name, known)}")
    for key in known.values():
        if key.required and key.name not in value:
            yield Problem((*path, key.name), f"expected {words(key.type)}, got nothing")


def _fits(value: Any, described: inspect.Type) -> bool:
    match described:
        case inspect.UnionType():
            return any(_fits(value, bare(member)) for member in described.types)
        case inspect.LiteralType():
            return isinstance(value, str) and value in described.values
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.IntType():
            return type(value) is int and _within(value, described)
        case inspect.FloatType():
            return type(value) in (int, float) and _within(value, described)
        case inspect.StrType():
            return isinstance(value, str) and len(value) >= (described.min_length or 0)
    return False


def _within(value: float, number: inspect.IntType | inspect.FloatType) -> bool:
    return (
        (number.ge is None or value >= number.ge)
        and (number.gt is None or value > number.gt)
        and (number.le is None or value <= number.le)
    )


def _got(value: Any, path: KeyPath) -> str:
    if is_secret(path):
        return f"{_GOT.get(type(value), 'something else')} (not shown)"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, str):
        return "an empty string" if not value else f'the string "{mask_setting(value)[:60]}"'
    return _GOT.get(type(value), "something else")


_GOT: dict[type, str] = {
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}


def _choice_hint(value: Any, described: inspect.Type) -> str:
    if isinstance(described, inspect.LiteralType) and isinstance(value, str):
        return suggest(value, [str(choice) for choice in described.values])
    return ""


def is_secret(path: KeyPath) -> bool:
    """Whether the value at `path` may be a secret, which is never shown."""
    return not SECRET_TABLES.isdisjoint(path[:-1]) or not SECRET_KEYS.isdisjoint(path[-1:])


def suggest(name: str, among: Iterable[str]) -> str:
    """`; did you mean "x"?` with the nearest of `among`, or nothing."""
    nearest = difflib.get_close_matches(name, list(among), n=3, cutoff=0.5)
    return "; did you mean " + " or ".join(f'"{word}"' for word in nearest) + "?" if nearest else ""


def dotted(path: KeyPath) -> str:
    """The key as TOML would write it: `agents.gemini.command`, `policy.rules[0].decision`."""
    text = ""
    for part in path:
        if part.startswith("["):
            text += part
        else:
            plain = part.replace("-", "").replace("_", "").isalnum() and part.isascii()
            text += ("." if text else "") + (part if plain else '"' + part.replace('"', '\\"') + '"')
    return text
