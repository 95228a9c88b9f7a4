"""What is in a folder that a command reads or changes as a whole, such as `grep -r key src`: it is touched as well.

Folders are looked into when a rule is about something that may be in them, once for each act, and only so far: in a
folder with more entries than `MAX_ENTRIES` there may be anything.
"""

from __future__ import annotations

import fnmatch
import os
from typing import Literal

from dragoman.policy.act import Below, Tree, Trees
from dragoman.policy.globs import Glob
from dragoman.policy.shell.budget import budget

MAX_ENTRIES = 20_000
"""Entries of one tree that are looked at, which takes about 20 ms; the event loop waits for it."""


def find_below(
    glob: Glob, folder: str, below: Below, trees: Trees
) -> tuple[Literal["no", "maybe", "yes"], str]:
    """Whether something in a folder matches, and what."""
    found: Literal["maybe", "yes"] = "yes" if below.sure else "maybe"
    start = folder
    if not below.links:  # by a link, what is there has a path elsewhere
        if not glob.may_match_below(folder):
            return "no", ""
        if _is_in(glob.head, folder):
            start = glob.head
            if not os.path.lexists(start) or (not below.hidden and "/." in start[len(folder.rstrip("/")) :]):
                return "no", ""
            if glob.whole and _is_touched(start, folder, below.names):
                return found, start
    tree = _tree(start, below, trees)
    match = next(
        (
            path
            for path in tree.paths
            if path.endswith(glob.tail) and glob.matches(path) and _is_touched(path, folder, below.names)
        ),
        None,
    )
    if match is not None:
        return found, match
    return ("no", "") if tree.complete else ("maybe", "one of very many files")


def _is_in(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")


def _is_touched(path: str, folder: str, names: tuple[str, ...]) -> bool:
    """Whether a path has one of the names, or is in a folder that has: with none, everything is touched."""
    if not names or not _is_in(path, folder):
        return True
    steps = [*path[len(folder.rstrip("/")) :].split("/"), os.path.basename(folder)]  # noqa: PTH119
    return any(fnmatch.fnmatch(step.casefold(), name.casefold()) for step in steps for name in names)


def _tree(folder: str, below: Below, trees: Trees) -> Tree:
    key = folder, below
    if key not in trees:
        trees[key] = _walk(folder, below, min(MAX_ENTRIES, budget.left()))
    return trees[key]


def _walk(folder: str, below: Below, most: int) -> Tree:
    """What is below a folder; not complete if there are more than `most` entries."""
    paths: list[str] = []
    pending, linked, hidden, left = [folder], set[str](), below.hidden, most
    while pending and left >= 0:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    left -= 1
                    if left < 0:
                        break
                    if not hidden and entry.name.startswith("."):
                        continue
                    path = entry.path
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(path)
                    elif entry.is_symlink():
                        if not below.links:
                            continue
                        path = os.path.realpath(path)
                        if path not in linked and os.path.isdir(path):  # noqa: PTH112
                            linked.add(path)
                            pending.append(path)
                    paths.append(path)
        except OSError:  # no folder, or one that the agent may not read either
            continue
    budget.spend(most - max(left, 0))
    return Tree(tuple(paths), complete=left >= 0)
