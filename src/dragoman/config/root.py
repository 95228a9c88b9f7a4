"""From a folder to the project that it belongs to (G-152)."""

from __future__ import annotations

import os
from pathlib import Path

from dragoman.config.errors import ConfigError
from dragoman.config.paths import find_paths

WORKSPACE_FILE = Path(".dragoman", "config.toml")
MARKERS = (WORKSPACE_FILE, Path(".containai", "config.toml"))


def find_root(cwd: Path) -> Path:
    """The git top level, else the nearest marker's folder, else `cwd` itself; by its real name, however it was reached.

    A symlink in a project that leads out of it belongs to that project: an agent there must not choose another.
    """
    real = Path(os.path.realpath(cwd))
    named = _marked(cwd)
    project = Path(os.path.realpath(named)) if named is not None else None
    if project is not None and not real.is_relative_to(project):
        return project
    return _marked(real) or real


def _marked(cwd: Path) -> Path | None:
    """The nearest folder that says that it is a project.

    A folder that may not be looked into, or whose name is too long, has no marker.
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
    """The user's own configuration: with `DRAGOMAN_HOME=~/.dragoman` it would make one project of the home folder."""
    try:
        return find_paths().config_file
    except ConfigError:
        return None


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 (Path.is_file raises where it may not look)
