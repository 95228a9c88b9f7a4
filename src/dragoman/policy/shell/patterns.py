"""Patterns of the shell: the files that they stand for now, and whether one of them leads out of the workspace."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator, Sequence

from dragoman.policy.act import Access, PathFact
from dragoman.policy.shell.limits import MAX_GLOB
from dragoman.policy.shell.real_paths import Looks, has_other_names, is_outside, real_place

PATTERN = re.compile(r"[*?\[]")
_WIDE = re.compile(r"[*?\[\\]")


def pattern_fact(path: str, access: Access, workspace: str, looks: Looks) -> PathFact:
    """A pattern, which is outside if the folder is, or one of the names there leads outside."""
    at = PATTERN.search(path)
    assert at is not None
    head, _, tail = path[: at.start()].rpartition("/")
    folder, sure = real_place(head or "/")
    steps = [step for step in (tail + path[at.start() :]).split("/") if step not in ("", ".")]
    names = _Names(workspace, access, looks)
    names.expand(folder, steps)
    # `.*` is also `..` for bash before 5.2.
    outside = not sure or is_outside(folder, workspace) or names.lead_out or any(map(_is_upwards, steps))
    pattern = "/".join(steps)
    return PathFact(
        f"{folder.rstrip('/')}/{pattern}", access, outside, tuple(names.found), more=names.more or not sure
    )


def folder_of_pattern(path: str) -> str:
    """The folder in which the names of a pattern are looked for."""
    at = PATTERN.search(path)
    return path if at is None else path[: at.start()].rpartition("/")[0] or "/"


def _is_upwards(step: str) -> bool:
    return step.startswith(".") and fnmatch.fnmatchcase("..", _widened(step))


def _widened(step: str) -> str:
    """Brackets as `*`: those of the shell know classes and `^`, and quoted ones are no pattern."""
    return step[: at.start()] + "*" if (at := re.search(r"[\[\\]", step)) else step


class _Names:
    """The files that a pattern stands for now. A wildcard counts for hidden files too: the shell may be set so."""

    def __init__(self, workspace: str, access: Access, looks: Looks) -> None:
        self._workspace = workspace
        self._access = access
        self._looks = looks
        self.found: dict[str, None] = {}
        self.lead_out = False
        """One of them is not in the workspace, or may not be."""
        self.more = False
        """There are more than are looked at."""

    def expand(self, folder: str, steps: Sequence[str]) -> None:
        """Look for the names below a folder, which is a real path."""
        if not steps:
            self.found[folder] = None
            return
        step, rest = steps[0], steps[1:]
        if not _WIDE.search(step):
            self._enter(os.path.join(folder, step), rest)  # noqa: PTH118
            return
        if _is_upwards(step):
            self._enter(os.path.dirname(folder), rest)  # noqa: PTH120
            self.expand(folder, rest)
        deep = "**" in step  # for zsh, any number of folders
        if deep:
            self.expand(folder, rest)
        for entry in self._entries(folder):
            if deep and entry.is_dir(follow_symlinks=False):
                self.expand(entry.path, steps)
            if not fnmatch.fnmatchcase(entry.name, _widened(step)):
                continue
            if entry.is_symlink():
                self._enter(entry.path, rest)
            elif not rest or entry.is_dir():
                self._check(entry.path, rest)
                self.expand(entry.path, rest)

    def _enter(self, place: str, rest: Sequence[str]) -> None:
        """Go on at a path that may be a link, if there is such a file."""
        path, sure = real_place(place)
        if not sure or is_outside(path, self._workspace):
            self.lead_out = self.lead_out or os.path.lexists(place)
        if os.path.lexists(path):
            self._check(path, rest)
            self.expand(path, rest)

    def _check(self, path: str, rest: Sequence[str]) -> None:
        if self._access == "write" and not rest and has_other_names(path):
            self.lead_out = True

    def _entries(self, folder: str) -> Iterator[os.DirEntry[str]]:
        self.more = self.more or folder.startswith("/proc/")  # other ones for each process
        try:
            with os.scandir(folder) as entries:
                for count, entry in enumerate(entries):
                    if count >= MAX_GLOB or not self._looks.take():
                        self.more = self.lead_out = True
                        return
                    yield entry
        except OSError:
            return  # no such folder: the shell passes the pattern on as it is


def leads_out(folder: str, workspace: str, looks: Looks) -> bool:
    """Whether a link anywhere below a folder leads out of the workspace; also if there is too much to look at."""
    pending = [folder]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if not looks.take():
                        return True
                    if entry.is_symlink() and _leads_away(entry.path, workspace):
                        return True
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
        except OSError:
            continue
    return False


def _leads_away(place: str, workspace: str) -> bool:
    path, sure = real_place(place)
    return not sure or is_outside(path, workspace)
