"""What is in a folder that a command reads or changes as a whole, such as `grep -r key src`: it is touched as well.

Folders are looked into when a rule is about something that may be in them, once for each act, and only so far: in a
folder with more entries than `MAX_ENTRIES` there may be anything.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
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
            if glob.whole:
                return found, start
    tree = _tree(start, below, trees)
    match = next((path for path in tree.paths if glob.matches(path)), None)
    if match is not None:
        return found, match
    return ("no", "") if tree.complete else ("maybe", "one of very many files")


def _is_in(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")


def _tree(folder: str, below: Below, trees: Trees) -> Tree:
    key = folder, below
    if key not in trees:
        paths: list[str] = []
        complete, most = True, min(MAX_ENTRIES, budget.left())
        for path in _walk(folder, below):
            if len(paths) >= most:
                complete = False
                break
            paths.append(path)
        budget.spend(len(paths))
        trees[key] = Tree(tuple(paths), complete)
    return trees[key]


def _walk(folder: str, below: Below) -> Iterator[str]:
    pending, linked = [folder], set[str]()
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if not below.hidden and entry.name.startswith("."):
                        continue
                    if not entry.is_symlink():
                        yield entry.path
                        if entry.is_dir(follow_symlinks=False):
                            pending.append(entry.path)
                    elif below.links:
                        place = os.path.realpath(entry.path)
                        yield place
                        if place not in linked and os.path.isdir(place):  # noqa: PTH112
                            linked.add(place)
                            pending.append(place)
        except OSError:  # no folder, or one that the agent may not read either
            continue
