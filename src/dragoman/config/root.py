"""Finds the project that a folder belongs to (G-152)."""

from __future__ import annotations

import os
from pathlib import Path

from dragoman.config.errors import ConfigError
from dragoman.config.paths import find_paths

WORKSPACE_FILE = Path(".dragoman", "config.toml")
MARKERS = (WORKSPACE_FILE, Path(".containai", "config.toml"))


def find_root(cwd: Path) -> Path:
    """The git top level, else the nearest marker's folder, else `cwd` itself; symlinks are resolved.

    A symlink that leads out of a project still belongs to it: an agent must not choose another project that way.
    """
    real = Path(os.path.realpath(cwd))
    named = _marked(cwd)
    project = Path(os.path.realpath(named)) if named is not None else None
    if project is not None and not real.is_relative_to(project):
        return project
    return _marked(real) or real


def _marked(cwd: Path) -> Path | None:
    """The nearest folder, from `cwd` upwards, with `.git`, else the nearest with another marker.

    A folder that cannot be read, or whose name is too long, counts as unmarked.
    """
    places = [cwd, *cwd.parents]
    for place in places:
        if os.path.lexists(place / ".git"):  # a directory, or a file in worktrees and submodules
            return place
    own = _own_file()
    for place in places:
        if any(_is_file(place / marker) and place / marker != own for marker in MARKERS):
            return place
    return None


def _own_file() -> Path | None:
    """The user's configuration file, which is no marker: `DRAGOMAN_HOME=~/.dragoman` would make the home a project."""
    try:
        return find_paths().config_file
    except ConfigError:
        return None


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 (Path.is_file raises where it may not look)
