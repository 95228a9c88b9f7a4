"""Where this program is installed, and a PATH on which its agents are found.

Editors and services that are started from a desktop have another PATH than a terminal, so both are written down.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

NAME = "dragoman"
STANDARD = ("/usr/local/bin", "/usr/bin", "/bin")
_CACHES = ("archive-v0", "builds-v0", "environments-v2")
"""Folders of uv's cache; `uvx` runs programs from there and removes them later."""


class NotInstalled(Exception):
    """There is no program that could be started later; the message says what to do."""


@dataclass(frozen=True, slots=True)
class SearchPath:
    """Folders for PATH, and those of the present one that are left out, each with the reason."""

    folders: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return os.pathsep.join(self.folders)


def program(environ: Mapping[str, str] = os.environ) -> Path:
    """The absolute path of this program as it was called: a link stays one, so that it outlives an upgrade.

    Raises `NotInstalled`.
    """
    called = Path(sys.argv[0])
    candidates = [called.absolute()] if called.name == NAME else []
    candidates.append(Path(sys.executable).absolute().with_name(NAME))
    found = shutil.which(NAME, path=environ.get("PATH"))
    candidates += [Path(found).absolute()] if found is not None else []
    for candidate in candidates:
        if os.access(candidate, os.X_OK) and candidate.is_file():
            return _checked(Path(os.path.normpath(candidate)))
    raise NotInstalled(
        f"the program {NAME} was not found beside {sys.executable} or on PATH: install it "
        "(docs/how-to/install.md), or say where it is with --program"
    )


def _checked(path: Path) -> Path:
    if set(path.resolve().parts) & set(_CACHES):
        raise NotInstalled(
            f"{path} is in the cache of uvx, which is emptied: install with `uv tool install`, or give --program"
        )
    if not str(path).isprintable():
        raise NotInstalled(f"the path {str(path)!r} has characters that settings cannot have: give --program")
    return path


def search_path(environ: Mapping[str, str] = os.environ) -> SearchPath:
    """The present PATH without what is gone later or is not safe, and with the standard folders."""
    folders: list[str] = []
    left_out: list[tuple[str, str]] = []
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        if folder in folders or any(folder == other for other, _ in left_out):
            continue
        reason = _unfit(folder, environ)
        if reason:
            left_out.append((folder, reason))
        else:
            folders.append(folder)
    folders += [folder for folder in STANDARD if folder not in folders and Path(folder).is_dir()]
    return SearchPath(tuple(folders), tuple(left_out))


def _unfit(folder: str, environ: Mapping[str, str]) -> str:
    """Why a folder of PATH is not written down; empty if it is."""
    if not folder.startswith("/"):
        return "not absolute"
    if not folder.isprintable():
        return "unprintable characters"
    try:
        mode = Path(folder).stat().st_mode
    except OSError:
        return "does not exist"
    if not stat.S_ISDIR(mode):
        return "not a folder"
    if mode & stat.S_IWOTH:
        return "every user may write to it"
    if Path(folder).is_relative_to(environ.get("TMPDIR") or "/tmp"):
        return "temporary"
    if "node_modules" in Path(folder).parts:
        return "of one project"
    if environ.get("VIRTUAL_ENV") and folder == f"{environ['VIRTUAL_ENV']}/bin":
        return "an activated environment"
    return ""
