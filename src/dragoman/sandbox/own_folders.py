"""Dragoman's own folders, which no box may show.

They hold the token, the sockets, trust settings and all sessions: an agent that can read them can escape. A box that
would show one of them, a folder above it or a part of it, is refused.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from dragoman.config.paths import Paths

_VOLUMES = ("-v", "--volume")
_SHORT_WITH_VALUE = frozenset("acehlmpuw")
"""Short options of docker and podman that take a value: in `-eV=1` the rest is no option."""
_BINDS = tuple(f"--{how}{last}" for how in ("bind", "ro-bind", "dev-bind") for last in ("", "-try"))
_SOURCES = ("source", "src")

_Identity = tuple[int, int]
"""Device and inode of a file."""


@dataclass(frozen=True, slots=True)
class OwnFolder:
    """One of Dragoman's own folders, as it is now."""

    what: str
    path: Path
    real: str
    above: frozenset[_Identity]
    """Identities of the folder and of all folders above it that exist."""

    @classmethod
    def look(cls, what: str, path: Path) -> OwnFolder:
        real = os.path.realpath(path)
        return cls(what, path, real, _above(real))


def own_folders(paths: Paths) -> list[OwnFolder]:
    """Dragoman's own folders; several may be the same."""
    found = {
        "state": paths.state_dir,
        "configuration": paths.config_file.parent,
        "runtime": paths.runtime_dir,
    }
    return [OwnFolder.look(what, path) for what, path in found.items()]


def conflict(shown: str, own: Sequence[OwnFolder], *, inside: bool = True) -> str | None:
    """Why a path must not be shown, as the rest of a sentence that begins with its name; None if it may be.

    Compared by name and by inode: a bind mount, or another spelling on a case-insensitive disk, has another name.
    Without `inside` only a folder that holds one of ours is a conflict, not one that lies in it.
    """
    real = os.path.realpath(shown)
    known = _identity(real)
    above = _above(real) if inside else frozenset()
    # The folder of a session's worktree is the session's; with DRAGOMAN_HOME all of our folders are around it.
    around = {folder.real for folder in own if folder.what == "state" and _is_worktree(real, folder.real)}
    for folder in own:
        name = f"Dragoman's {folder.what} folder {folder.path}"
        if _is_below(folder.real, real) or known in folder.above:
            return f"{'is' if real == folder.real else 'holds'} {name}"
        if any(_is_below(state, folder.real) for state in around):
            continue
        if inside and (_is_below(real, folder.real) or _identity(folder.real) in above):
            return f"lies in {name}"
    return None


def bound(words: Sequence[str]) -> Iterator[str]:
    """Paths of this machine that the arguments of an engine, or of bubblewrap, mount in a box."""
    for word, after in pairwise([*words, ""]):
        option, equals, value = word.partition("=")
        if option in _VOLUMES:
            yield from _volume(value if equals else after)
        elif (volume := _short_volume(word)) is not None:
            yield from _volume(volume or after)
        elif option == "--mount":
            yield from _mount(value if equals else after)
        elif word in _BINDS:
            yield after


def _short_volume(word: str) -> str | None:
    """The text after `v` in a word of short options (`-itv/a:/b`, `-itv`); None without a `v`."""
    if not word.startswith("-") or word.startswith("--"):
        return None
    for place, letter in enumerate(word[1:], 2):
        if letter == "v":
            return word[place:].removeprefix("=")
        if letter in _SHORT_WITH_VALUE:
            return None  # the rest is its value
    return None


def _volume(value: str) -> Iterator[str]:
    """The path in `PATH:INSIDE`; anything but a path is the name of an engine's volume."""
    source, colon, _ = value.partition(":")
    if colon and source.startswith(("/", ".")):
        yield source


def _mount(value: str) -> Iterator[str]:
    fields = dict(field.partition("=")[::2] for field in value.split(","))
    source = next((fields[name] for name in _SOURCES if name in fields), "")
    if source.startswith(("/", ".")):
        yield source


def _is_worktree(path: str, state: str) -> bool:
    """Whether a path lies in one worktree, a folder of a session in our state folder: `worktrees/KEY/NAME`."""
    start = posixpath.join(state, "worktrees") + "/"
    steps = path[len(start) :].split("/") if path.startswith(start) else []
    return len(steps) >= 2 and "." not in steps[1]


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _above(path: str) -> frozenset[_Identity]:
    names = [path]
    while names[-1] != "/":
        names.append(posixpath.dirname(names[-1]))
    return frozenset(known for known in map(_identity, names) if known is not None)


def _identity(path: str) -> _Identity | None:
    try:
        status = os.stat(path)  # noqa: PTH116 (a `Path` for each costs more than the call)
    except OSError:  # missing, or no permission
        return None
    return status.st_dev, status.st_ino
