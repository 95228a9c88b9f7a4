"""Places that no agent may write to, whatever rules say: those that would let it change what is decided here.

The audit, with the key that signs it, may not be read either.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dragoman.policy.act import Act, Command, PathFact
from dragoman.policy.nested import SETTINGS, Seen, find_place
from dragoman.policy.shell.programs.git.nested import runs_nothing
from dragoman.policy.shell.programs.git.words import only_reads
from dragoman.policy.shell.programs.names import names

_MOVES_TREES = frozenset({"rm", "mv", "rmdir", "chmod", "chown", "chgrp", "find", "ln", "shred"})
_CHANGES = frozenset(
    {"rm", "mv", "shred", "chmod", "chown", "chgrp", "find", "gzip", "gunzip", "bzip2", "xz", "zstd", "sed"}
)
"""Programs that take away or change every file of a folder that they go into."""
_NO_WIDTH = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
_PATTERN = re.compile(r"[*?\[]")
_MOVES = re.compile(r"-[A-Za-z0-9]*m")
"""Of `zip`."""


def denied_place(act: Act, folders: Sequence[str]) -> tuple[PathFact, str] | None:
    """The first fact that would touch a protected path, and that path. `folders` are real paths of our own folders."""
    worktree = act.workspace if act.project else None
    for command in act.commands:
        for path in command.paths:
            if _is_denied(path, folders, worktree) or (
                path.access == "read" and _may_write(command) and _names_protected(path, worktree)
            ):
                return replace(path, access="write") if _may_write(command) else path, path.path
            if path.access == "write" and (place := _place_inside(command, path, folders)):
                return path, place
    lone = next((path for path in act.paths if _is_denied(path, folders, worktree)), None)
    return (lone, lone.path) if lone is not None else None


_BUILDERS = names(
    """
    pytest py.test python python3 node cargo go npm pnpm yarn make gmake docker kubectl gh tsc
    """
)
"""Programs that write what they make to files that an option names: `go test -o`, `cargo --target-dir`."""


def _may_write(command: Command) -> bool:
    if command.names[0] == "git":
        return len(command.names) > 1 and not (only_reads(command.names[1]) or command.names[1] == "config")
    return command.names[0] in _BUILDERS


def _names_protected(path: PathFact, worktree: str | None) -> bool:
    """Whether the path itself is protected; of a pattern, what it stands for may be."""
    if path.path.isascii() and "git" not in (low := path.path.lower()) and "dragoman" not in low:
        return False  # most paths: this is asked with every one of every line
    return _is_protected(replace(path, names=()), (), worktree)


def doubtful_place(act: Act, folders: Sequence[str]) -> str | None:
    """A protected path that may be written to, because names of files are not known or very many."""
    for command in act.commands:
        for path in command.paths:
            if path.access != "write":
                continue
            if path.fills and (place := _filled_place(path, folders)):
                return place
            if path.below is not None and path.below.sure:
                found, place = _inside(path)
                if found == "maybe" or (found == "yes" and command.names[0] not in _ONLY_READS_TREES):
                    return place
    return None


_ONLY_READS_TREES = frozenset({"tar", "bsdtar", "gtar", "zip", "rsync", "cp", "scp", "ln", "install"})
"""Programs of which other facts say what they write; the folders that they are given are copied or packed."""


def _filled_place(path: PathFact, folders: Sequence[str]) -> str | None:
    if not path.known:
        return path.path
    if path.like:
        copied: list[str] = []

        def passes(place: str) -> bool:
            """Left out, or the repository of a plain clone, which may be copied to where none is."""
            name = place.rpartition("/")[2]
            if name in path.left_out or (f"{name}/" in path.left_out and Path(place).is_dir()):
                return True
            copied.append(place)
            return runs_nothing(place)

        found = [find_place(place, passes=passes) for place in path.like]
        if (sure := next((place for seen, place in found if seen == "yes"), None)) is not None:
            return f"a copy of {sure}"
        if all(seen == "no" for seen, _ in found) and not copied:
            return None
    if ours := next((folder for folder in folders if _is_within(folder, path.path)), None):
        return ours
    seen, place = find_place(path.path)
    return place if seen != "no" else None


def _is_denied(path: PathFact, folders: Sequence[str], worktree: str | None = None) -> bool:
    """`worktree` is the session's own, which lies in one of our folders and is the session's to write to."""
    if path.access == "write":
        return _is_protected(path, folders, worktree)
    deep = path.below is not None and path.below.sure
    return any(
        _is_within(name, audit) or (deep and _is_within(audit, name))
        for audit in (f"{folder.rstrip('/')}/audit" for folder in folders)
        for name in (path.path, *path.names)
    )


def _is_protected(path: PathFact, folders: Sequence[str], worktree: str | None = None) -> bool:
    if any(
        _is_protected(PathFact(name, path.access, path.outside), folders, worktree) for name in path.names
    ):
        return True
    if worktree is not None and path.known and _is_below(path.path, worktree):
        inner = path.path[len(worktree.rstrip("/")) :] or "/"
        return _is_protected(PathFact(inner, path.access, path.outside), ())
    parts = _folded(path.path).rstrip("/").split("/")
    if any(_may_be(part, ".dragoman") for part in parts) or _is_git(parts[-1]):
        return True
    for index, part in enumerate(parts[:-1]):
        if _is_git(part) and any(_may_be(later, name) for later in parts[index + 1 :] for name in SETTINGS):
            return True
    return any(_is_within(path.path, folder) for folder in folders)


def _folded(path: str) -> str:
    """As file systems find it that ignore case, and characters without a width."""
    return _NO_WIDTH.sub("", path).casefold()


def _is_within(path: str, folder: str) -> bool:
    path, folder = _folded(path), _folded(folder).rstrip("/")
    return path == folder or path.startswith(folder + "/")


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _is_git(part: str) -> bool:
    return part == "git~1" or _may_be(part, ".git")


def _may_be(part: str, name: str) -> bool:
    """Whether a step of a path is this name, or a pattern for it. A pattern finds names with a dot if it has one."""
    if part == name:
        return True
    if not _PATTERN.search(part) or (name.startswith(".") and not part.startswith(".")):
        return False
    return fnmatch.fnmatchcase(name, _PATTERN.sub("*", part.partition("[")[0] + ("*" if "[" in part else "")))


def _place_inside(command: Command, path: PathFact, folders: Sequence[str]) -> str | None:
    """The protected place in a tree that would be removed, moved, changed or opened to others."""
    if command.names[0] in _MOVES_TREES and any(_is_within(folder, path.path) for folder in folders):
        return path.path
    changes = command.names[0] in _CHANGES or _takes_away(command)
    if not changes or path.below is None or not path.below.sure:
        return None
    found, place = _inside(path)
    return place if found == "yes" else None


def _takes_away(command: Command) -> bool:
    """Whether an option makes a program that packs or copies take its sources away."""
    options = [effect.option for effect in command.effects if effect.does == "writes"]
    return any(option.startswith(("--rem", "--mov")) for option in options) or (
        command.names[0] == "zip" and any(_MOVES.match(option) for option in options)
    )


def _inside(path: PathFact) -> tuple[Seen, str]:
    """The first protected place in the folders that a fact stands for."""
    names = path.below.names if path.below is not None else ()
    found = [find_place(folder, names) for folder in (path.path, *path.names)]
    return next(
        (each for wanted in ("yes", "maybe", "large") for each in found if each[0] == wanted), ("no", "")
    )
