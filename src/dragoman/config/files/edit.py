"""Edits the user's configuration file; comments and order stay as they are."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dragoman.atomic_file import replace_file
from dragoman.config.errors import ConfigError
from dragoman.config.files import toml
from dragoman.config.load import parse, read
from dragoman.config.paths import Paths

MOST_VALUE_LINES = 200
"""Lines that one value may have where it is replaced."""
_HEADER = re.compile(r"^\s*\[\[?\s*(.+?)\s*\]\]?\s*(#.*)?$")


def add_agent(paths: Paths, name: str, settings: dict[str, Any], replace: bool = False) -> None:
    """Append `[agents.NAME]` to the user's file; an existing agent of that name is an error unless `replace`."""
    text, data = _current(paths)
    if name in data.get("agents", {}):
        if not replace:
            raise ConfigError(
                f'{paths.config_file}: there is an agent "{name}" already (--force replaces it)'
            )
        text = _without_agent(text, name)
    lines = [
        f"[agents.{toml.key(name)}]",
        *(f"{toml.key(key)} = {toml.value(each)}" for key, each in settings.items()),
    ]
    text = text.rstrip("\n") + "\n\n" if text.strip() else ""
    text += "\n".join(lines) + "\n"
    expected = {**data, "agents": {**data.get("agents", {}), name: settings}}
    _write(paths, text, expected)


def remove_agent(paths: Paths, name: str) -> None:
    """Remove `[agents.NAME]` from the user's file."""
    text, data = _current(paths)
    if name not in data.get("agents", {}):
        raise ConfigError(f'{paths.config_file}: there is no agent "{name}" in it')
    agents = {other: each for other, each in data["agents"].items() if other != name}
    expected = {**data, "agents": agents}
    if not agents:
        del expected["agents"]
    _write(paths, _without_agent(text, name), expected)


def set_value(paths: Paths, path: Sequence[str], value: Any) -> None:
    """Set one key in the user's file, in its table if that is there; the rest of the file stays as it is."""
    text, data = _current(paths)
    expected = _with(data, path, value)
    line = f"{toml.key(path[-1])} = {toml.value(value)}\n"
    for changed in _candidates(text, list(path), line):
        if _parses_to(changed, expected):
            write_file(paths, changed)
            return
    raise ConfigError(f"{paths.config_file}: cannot be changed automatically: edit it by hand")


def _with(data: dict[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    inner = data.get(path[0])
    if len(path) == 1:
        return {**data, path[0]: value}
    return {**data, path[0]: _with(inner if isinstance(inner, dict) else {}, path[1:], value)}


def _candidates(text: str, path: list[str], line: str) -> Iterator[str]:
    """Texts that may set the key: in place of its line (or several), in its table, in a new table."""
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    table: list[str] = []
    start, ends = 0, {}
    for number, each in enumerate(lines):
        if found := _HEADER.match(each):
            ends[tuple(table)] = start
            table = [] if each.lstrip().startswith("[[") else _table(found[1])
            start = number + 1
        elif table == path[:-1] and _sets(each, path[-1]):
            comment = re.search(r"\s+#[^\"']*$", each.rstrip("\n"))
            kept = line.rstrip("\n") + (comment[0] if comment else "") + "\n"
            for behind in range(number + 1, min(number + MOST_VALUE_LINES, len(lines)) + 1):
                yield "".join([*lines[:number], kept if behind == number + 1 else line, *lines[behind:]])
        if each.strip() and not each.lstrip().startswith("#"):
            start = number + 1
    ends[tuple(table)] = start
    if (place := ends.get(tuple(path[:-1]))) is not None:
        yield "".join([*lines[:place], line, *lines[place:]])
    header = f"[{'.'.join(map(toml.key, path[:-1]))}]\n" if path[1:] else ""
    yield "".join([*lines, "\n" if lines else "", header, line] if header else [line, *lines])


def _sets(line: str, key: str) -> bool:
    name, equals, _ = line.partition("=")
    return bool(equals) and name.strip().strip("\"'") == key


def _current(paths: Paths) -> tuple[str, dict[str, Any]]:
    content = read(paths.config_file) or b""
    data = parse(paths.config_file, content)
    return content.decode(), data


def _without_agent(text: str, name: str) -> str:
    kept = []
    inside = False
    for line in text.splitlines(keepends=True):
        if found := _HEADER.match(line):
            inside = _table(found[1])[:2] == ["agents", name]
        if not inside:
            kept.append(line)
    return "".join(kept)


def _table(header: str) -> list[str]:
    """The parts of a table's name, unquoted by the TOML parser."""
    try:
        data: Any = tomllib.loads(f"[{header}]")
    except tomllib.TOMLDecodeError:
        return []  # a line of an array or a text that only looks like a header
    parts = []
    while isinstance(data, dict) and data:
        parts.append(next(iter(data)))
        data = data[parts[-1]]
    return parts


def _write(paths: Paths, text: str, expected: dict[str, Any]) -> None:
    """Write `text` if it parses to `expected`; else raise `ConfigError`, and the user has to edit the file."""
    if not _parses_to(text, expected):
        raise ConfigError(f"{paths.config_file}: cannot be changed automatically: edit it by hand")
    write_file(paths, text)


def _parses_to(text: str, expected: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == expected
    except tomllib.TOMLDecodeError:
        return False


def write_file(paths: Paths, text: str) -> None:
    """Replace the user's file in one step; it is private, since it may hold keys, and a symlink stays a symlink."""
    file = Path(os.path.realpath(paths.config_file))
    paths.ensure(file.parent)
    try:
        replace_file(file, text.encode())
    except OSError as error:
        raise ConfigError(f"{file}: cannot be written: {error.strerror}") from error
