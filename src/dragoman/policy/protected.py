"""Places that no agent may write to, whatever rules say: those that would let it change what is decided here.

The audit, with the key that signs it, may not be read either.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Sequence

from dragoman.policy.act import Act, Command, PathFact

_MOVES_TREES = frozenset({"rm", "mv", "rmdir", "chmod", "chown", "find", "ln", "shred"})
_TAKES_AWAY = frozenset({"rm", "mv", "shred"})
"""Of these, programs after which the files of a folder are gone from it."""
_SETTINGS = ("config", "config.worktree", "hooks", "commondir", "gitdir")
"""Names inside `.git` that choose what git runs, also those of submodules and worktrees."""
_NO_WIDTH = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
_PATTERN = re.compile(r"[*?\[]")


def denied_place(act: Act, folders: Sequence[str]) -> PathFact | None:
    """The first protected path that the act would touch. `folders` are real paths of our own folders."""
    worktree = act.workspace if act.project else None
    for command in act.commands:
        for path in command.paths:
            if _is_denied(path, folders, worktree) or (
                path.access == "write" and _is_above(command, path, folders)
            ):
                return path
    return next((path for path in act.paths if _is_denied(path, folders, worktree)), None)


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
    if worktree is not None and path.known and path.path.startswith(worktree.rstrip("/") + "/"):
        inner = path.path[len(worktree.rstrip("/")) :]
        return _is_protected(PathFact(inner, path.access, path.outside), ())
    parts = _folded(path.path).rstrip("/").split("/")
    if any(_may_be(part, ".dragoman") for part in parts) or _is_git(parts[-1]):
        return True
    for index, part in enumerate(parts[:-1]):
        if _is_git(part) and any(_may_be(later, name) for later in parts[index + 1 :] for name in _SETTINGS):
            return True
    return any(_is_within(path.path, folder) for folder in folders)


def _folded(path: str) -> str:
    """As file systems find it that ignore case, and characters without a width."""
    return _NO_WIDTH.sub("", path).casefold()


def _is_within(path: str, folder: str) -> bool:
    path, folder = _folded(path), _folded(folder).rstrip("/")
    return path == folder or path.startswith(folder + "/")


def _is_git(part: str) -> bool:
    return part == "git~1" or _may_be(part, ".git")


def _may_be(part: str, name: str) -> bool:
    """Whether a step of a path is this name, or a pattern for it. A pattern finds names with a dot if it has one."""
    if part == name:
        return True
    if not _PATTERN.search(part) or (name.startswith(".") and not part.startswith(".")):
        return False
    return fnmatch.fnmatchcase(name, _PATTERN.sub("*", part.partition("[")[0] + ("*" if "[" in part else "")))


def _is_above(command: Command, path: PathFact, folders: Sequence[str]) -> bool:
    """Whether a whole tree with a protected folder in it would be removed, moved or opened to others."""
    if command.names[0] not in _MOVES_TREES:
        return False
    if any(_is_within(folder, path.path) for folder in folders):
        return True
    if command.names[0] not in _TAKES_AWAY or path.below is None or not path.below.sure:
        return False
    return any(
        os.path.lexists(f"{folder}/{name}")
        for folder in (path.path, *path.names)
        for name in (".git", ".dragoman")
    )
