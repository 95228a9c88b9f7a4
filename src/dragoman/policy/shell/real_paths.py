"""Real paths, and the looks at the disk that one line takes: bounded in all, and at each folder once."""

from __future__ import annotations

import os
import re
import stat
from functools import lru_cache

from dragoman.policy.shell.budget import budget
from dragoman.policy.shell.limits import MAX_TREE

_PROCESS = re.compile(r"/proc/(?:self|thread-self|[0-9]+)(?:/task/[0-9]+)?")
_MOST_LINKS = 40
_COST = 10
"""Of one entry that is compared with a pattern, against one that is only listed."""


@lru_cache(maxsize=64)
def real(path: str) -> str:
    """A folder's real path, kept: workspaces are asked for with every line."""
    return os.path.realpath(path)


def is_outside(path: str, workspace: str) -> bool:
    """Whether a real path is outside the workspace; without a workspace everything is."""
    if not workspace:
        return True
    root = real(workspace)
    return path != root and not path.startswith(root.rstrip("/") + "/")


def real_place(path: str, folder: str = "") -> tuple[str, bool]:
    """The real path, and whether it is the same for every process: `/proc/self` is the one that asks.

    `folder` is the one that the process runs in, as far as known.
    """
    if _is_real(path):
        return path, True
    try:
        if os.path.realpath(path) == path:
            return path, True
    except OSError:  # a link that may not be read, such as those of other users' processes
        return os.path.normpath(path), False
    return _walked(path, folder)


_NOT_PLAIN = re.compile(r"//|/\.\.?(?:/|$)|/$|\0|^[^/]|^$")


def _is_real(path: str) -> bool:
    """Whether none of its steps is a link; a quick form of `realpath`, which is called for every word."""
    if _NOT_PLAIN.search(path):
        return False
    at = 0
    try:
        while (at := path.find("/", at + 1)) > 0:
            if stat.S_ISLNK(os.lstat(path[:at]).st_mode):
                return False
        return not stat.S_ISLNK(os.lstat(path).st_mode)
    except (OSError, ValueError):  # from there on nothing is, or nothing may be read
        return True


def _walked(path: str, folder: str) -> tuple[str, bool]:
    """Follows links one by one; those of a process lead to the folder of the line, or are not known."""
    rest, place, sure, links = path.split("/")[::-1], "/", True, 0
    while rest:
        step = rest.pop()
        if step in ("", "."):
            continue
        place = os.path.dirname(place) if step == ".." else os.path.join(place, step)  # noqa: PTH118, PTH120
        if _PROCESS.fullmatch(place):
            sure = False
            inner = next((rest.pop() for _ in range(len(rest)) if rest[-1] not in ("", ".")), "")
            if inner not in ("cwd", "root") or (inner == "cwd" and not folder):
                return path, False
            place = real(folder) if inner == "cwd" else "/"
            continue
        try:
            target = os.readlink(place)  # noqa: PTH115
        except OSError:
            continue
        links += 1
        if links > _MOST_LINKS:
            return path, False
        place = "/" if target.startswith("/") else os.path.dirname(place)  # noqa: PTH120
        rest += target.split("/")[::-1]
    return place, sure


def has_other_names(path: str) -> bool:
    """Whether a file has hard links: what is written to it is written to a file that may be anywhere."""
    try:
        facts = os.lstat(path)
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(facts.st_mode) and facts.st_nlink > 1


class Looks:
    """What is looked up for one line. An agent chooses the line: a hundred patterns must not take seconds."""

    def __init__(self) -> None:
        self._left: int | None = None
        self._folders: dict[str, tuple[str, bool]] = {}

    def take(self) -> bool:
        """Whether one more entry of a folder may be looked at."""
        if self._left is None:
            self._left = min(MAX_TREE, budget.left() // _COST)
        if self._left <= 0:
            return False
        self._left -= 1
        budget.spend(_COST)
        return True

    def real_place(self, path: str, folder: str = "") -> tuple[str, bool]:
        """As the function; each folder is resolved once."""
        head, _, name = path.rpartition("/")
        if not head or name in ("", ".", ".."):
            return real_place(path, folder)
        if head not in self._folders:
            found, sure = real_place(path, folder)
            if found == path:
                self._folders[head] = head, True
            return found, sure
        above, sure = self._folders[head]
        place = f"{above.rstrip('/')}/{name}"
        if not sure or is_link(place) or _PROCESS.match(place):
            return real_place(path, folder)
        return place, True


def is_link(path: str) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False
