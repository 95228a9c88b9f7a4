"""Looks for protected places (`.git`, `.dragoman`) inside a folder that a command changes as a whole."""

from __future__ import annotations

import fnmatch
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Literal

from dragoman.policy.below import MAX_ENTRIES
from dragoman.policy.shell.budget import budget

PLACES = frozenset({".git", ".dragoman"})
SETTINGS = ("config", "config.worktree", "hooks", "commondir", "gitdir")
"""Names inside `.git` that choose what git runs, also those of submodules and worktrees."""
_MOST_NAMES = 200
"""Entries of one protected folder that are compared with a pattern."""

Seen = Literal["no", "maybe", "large", "yes"]


def find_place(
    folder: str, names: Sequence[str] = (), passes: Callable[[str], bool] = lambda place: False
) -> tuple[Seen, str]:
    """Whether a protected place is in a folder, at any depth, and where; `names` are patterns of what is touched.

    Places for which `passes` is true do not count.

    Folders are looked at level by level, so that what is near is found first. `large`: a part of the tree was not
    looked at. `maybe`: nothing was, because too much was looked at within this second.
    """
    if names and _is_named(os.path.basename(folder), names):  # noqa: PTH119
        names = ()  # the folder itself is taken, with all that is in it
    if not names:
        for name in sorted(PLACES):
            near = f"{folder.rstrip('/')}/{name}"
            if os.path.lexists(near) and not passes(near):
                return "yes", near
    most = min(MAX_ENTRIES, budget.left())
    if most <= 0 and os.path.isdir(folder):  # noqa: PTH112
        return "maybe", folder
    count = 0
    pending: deque[tuple[str, bool]] = deque([(folder, not names)])
    while pending:
        place, taken = pending.popleft()
        for entry in _entries(place):
            count += 1
            if count > most:
                budget.spend(count)
                return "large", folder
            whole = taken or _is_named(entry.name, names)
            if entry.name.casefold() in PLACES:
                if (whole or _has_named(entry.path, names)) and not passes(entry.path):
                    budget.spend(count)
                    return "yes", entry.path
            elif entry.is_dir(follow_symlinks=False):
                pending.append((entry.path, whole))
    budget.spend(count)
    return "no", ""


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:  # no folder, or one that the agent may not read either
        return


def _is_named(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name.casefold(), pattern.casefold()) for pattern in patterns)


def _has_named(place: str, patterns: Sequence[str]) -> bool:
    """Whether something inside a protected folder has such a name."""
    inside = [place] if place.endswith(".dragoman") else [f"{place}/hooks"]
    found = [entry.name for folder in inside for entry in islice(_entries(folder), _MOST_NAMES)]
    return len(found) >= _MOST_NAMES or any(_is_named(name, patterns) for name in (*SETTINGS, *found))
