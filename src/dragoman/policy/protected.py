"""Places that no agent may write to, whatever rules say: those that would let it change what is decided here."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.policy.act import Act, Command, PathFact

_MOVES_TREES = frozenset({"rm", "mv", "rmdir", "chmod", "chown", "find", "ln", "shred"})


def denied_place(act: Act, folders: Sequence[str]) -> str | None:
    """The first protected path that the act would write to. `folders` are real paths of our own folders."""
    for command in act.commands:
        for path in command.paths:
            if path.access == "write" and (_is_protected(path, folders) or _is_above(command, path, folders)):
                return path.path
    for path in act.paths:
        if path.access == "write" and _is_protected(path, folders):
            return path.path
    return None


def _is_protected(path: PathFact, folders: Sequence[str]) -> bool:
    parts = (
        path.path.lower().rstrip("/").split("/")
    )  # file systems that ignore case find them by any spelling
    if ".dragoman" in parts or parts[-1] == ".git":
        return True
    for index, part in enumerate(parts[:-1]):
        if part == ".git" and parts[index + 1] in ("config", "hooks", "config.worktree"):
            return True
    return any(path.path == folder or path.path.startswith(folder.rstrip("/") + "/") for folder in folders)


def _is_above(command: Command, path: PathFact, folders: Sequence[str]) -> bool:
    """Whether a whole tree with a protected folder in it would be removed, moved or opened to others."""
    if command.names[0] not in _MOVES_TREES:
        return False
    return any(folder.startswith(path.path.rstrip("/") + "/") for folder in folders)
