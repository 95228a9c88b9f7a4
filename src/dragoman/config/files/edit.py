"""Edits the user's configuration file; comments and order stay as they are."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

from dragoman.atomic_file import replace_file
from dragoman.config.errors import ConfigError
from dragoman.config.files import toml
from dragoman.config.load import parse, read
from dragoman.config.paths import Paths

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
    try:
        done = tomllib.loads(text) == expected
    except tomllib.TOMLDecodeError:
        done = False
    if not done:
        raise ConfigError(f"{paths.config_file}: cannot be changed automatically: edit it by hand")
    write_file(paths, text)


def write_file(paths: Paths, text: str) -> None:
    """Replace the user's file in one step; it is private, since it may hold keys, and a symlink stays a symlink."""
    file = Path(os.path.realpath(paths.config_file))
    paths.ensure(file.parent)
    try:
        replace_file(file, text.encode())
    except OSError as error:
        raise ConfigError(f"{file}: cannot be written: {error.strerror}") from error
