"""`DRAGOMAN_SECTION_KEY` variables as a layer of the configuration."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import inspect

from dragoman.config.errors import ConfigError
from dragoman.config.model import Config
from dragoman.config.schema import KeyPath, bare, keys, struct_of, suggest
from dragoman.config.variables import PREFIX, SPECIAL

TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off"})


def read_environment(
    environ: Mapping[str, str], names: Mapping[str, list[str]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each variable's name and the configuration that it sets.

    `names` lists the known agents and sandboxes: a variable cannot contain `my-agent`, so `MY_AGENT` matches it.
    """
    variables = _variables()
    for variable in sorted(environ):
        if not variable.startswith(PREFIX) or variable in SPECIAL:
            continue
        found = variables.get(variable) or _named(variable, names)
        if found is None:
            hint = suggest(variable, [*variables, *SPECIAL])
            raise ConfigError(f"environment variable {variable}: there is no such setting{hint}")
        path, described = found
        data: Any = parse(environ[variable], described)
        for key in reversed(path):
            data = {key: data}
        yield variable, data


def parse(text: str, described: inspect.Type) -> Any:
    """The value of `text` for this type; text that does not parse is returned as is, for the type check to report."""
    try:
        match described:
            case inspect.IntType():
                return int(text)
            case inspect.FloatType():
                return float(text)
            case inspect.BoolType():
                return text.lower() in TRUE if text.lower() in TRUE | FALSE else text
            case inspect.ListType():
                return json.loads(text) if text.lstrip().startswith("[") else _split(text)
            case inspect.DictType() | inspect.StructType():
                return json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _variables() -> dict[str, tuple[KeyPath, inspect.Type]]:
    """All variables but those that contain the name of an agent or sandbox."""
    found: dict[str, tuple[KeyPath, inspect.Type]] = {}
    for key in keys(struct_of(Config)):
        if isinstance(key.type, inspect.StructType):
            for inner in keys(key.type):
                found[f"{PREFIX}{key.name}_{inner.name}".upper()] = ((key.name, inner.name), inner.type)
        else:
            found[f"{PREFIX}{key.name}".upper()] = ((key.name,), key.type)
    return found


def _named(variable: str, names: Mapping[str, list[str]]) -> tuple[KeyPath, inspect.Type] | None:
    """The key of `DRAGOMAN_AGENTS_GEMINI_COMMAND`: the longest key that matches the end; the rest is the name."""
    for table in keys(struct_of(Config)):
        start = f"{PREFIX}{table.name}_".upper()
        if not isinstance(table.type, inspect.DictType) or not variable.startswith(start):
            continue
        entry = bare(table.type.value_type)
        if not isinstance(entry, inspect.StructType):
            continue
        for key in sorted(keys(entry), key=lambda each: -len(each.name)):
            end = f"_{key.name}".upper()
            spelled = variable[len(start) : -len(end)]
            if variable.endswith(end) and spelled:
                return (table.name, _spelled(spelled, names.get(table.name, [])), key.name), key.type
    return None


def _spelled(spelled: str, names: list[str]) -> str:
    for name in names:
        if name.upper().replace("-", "_") == spelled:
            return name
    return spelled.lower()
