"""Completes paths: the entries of a folder that begin with the typed text."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

from dragoman.bridge import limits
from dragoman.gateway.json_types import JsonObject


def complete(prefix: str, folder: str, *, directories: bool) -> list[JsonObject]:
    """Entries for `prefix`, which is absolute, begins with `~`, or is below `folder`; blocks, so run it in a thread.

    Hidden entries need a typed dot. A folder that is missing or unreadable has no entries.
    """
    parent, start = _split(prefix, folder)
    found: list[JsonObject] = []
    try:
        with os.scandir(parent) as entries:
            for entry in islice(entries, limits.PATHS_LOOKED_AT):
                if _matches(entry.name, start) and (not directories or _is_directory(entry)):
                    path = str(parent / entry.name)
                    found.append({"path": path, "name": entry.name, "directory": _is_directory(entry)})
    except (OSError, ValueError):
        return []
    found.sort(key=lambda each: (not each["directory"], str(each["name"]).lower()))
    return found[: limits.PATHS]


def _split(prefix: str, folder: str) -> tuple[Path, str]:
    """The folder to search, and the beginning of its entries."""
    head, slash, start = prefix.rpartition("/")
    if prefix == "~":
        head, slash, start = "~", "/", ""
    home = Path.home() if head == "~" or head.startswith("~/") else None
    if home is not None:
        return home / head[2:], start
    return Path(folder) / (head or slash), start


def _matches(name: str, start: str) -> bool:
    if name.startswith(".") and not start.startswith("."):
        return False
    return name.isprintable() and name.lower().startswith(start.lower())


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
