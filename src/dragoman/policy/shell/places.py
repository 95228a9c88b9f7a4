"""Paths of a command: absolute, through symlinks, inside the workspace or not."""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Sequence
from functools import lru_cache

from dragoman.policy.act import Access, PathFact
from dragoman.policy.shell.limits import MAX_GLOB, MAX_TREE
from dragoman.policy.shell.values import Arg, Scope

_STREAMS = frozenset(
    {"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/urandom"}
)
_STREAM = re.compile(r"/dev/fd/[0-2]")
_PATTERN = re.compile(r"[*?\[]")
_LONGEST_NAME = 255
_PROCESS = re.compile(r"/proc/(?:self|thread-self|[0-9]+)(?:/task/[0-9]+)?")
_MOST_LINKS = 40


def is_stream(path: str) -> bool:
    return path in _STREAMS or _STREAM.fullmatch(path) is not None


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
    try:
        if os.path.realpath(path) == path:
            return path, True
    except OSError:  # a link that may not be read, such as those of other users' processes
        return os.path.normpath(path), False
    return _walked(path, folder)


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


def place_fact(place: str, folder: str, access: Access, workspace: str) -> PathFact:
    """A path, which is outside also if it is another one for each process, or if its file has other names."""
    path, sure = real_place(place, folder)
    outside = not sure or is_outside(path, workspace) or (access == "write" and has_other_names(path))
    return PathFact(path, access, outside)


def _leads_away(place: str, workspace: str) -> bool:
    path, sure = real_place(place)
    return not sure or is_outside(path, workspace)


def facts_of(arg: Arg, access: Access, scope: Scope, workspace: str) -> list[PathFact]:
    """What an argument that is a path may name."""
    if arg.values is None or scope.folders is None:
        if arg.values is not None and all(value.startswith("/") for value in arg.values):
            return _resolved(arg, access, ("/",), workspace)
        return [PathFact(arg.text, access, outside=True)]
    return _resolved(arg, access, scope.folders, workspace)


def folders_outside(scope: Scope, access: Access, workspace: str) -> list[PathFact]:
    """The folders that a program runs in, if not in the workspace: they may be read without being named."""
    if scope.folders is None:
        return [PathFact("(an unknown folder)", access, outside=True)]
    # Not `real`, save for the workspace itself: a link may be there by now.
    found = [real_place(folder) for folder in scope.folders if folder != workspace]
    return [
        PathFact(folder, access, outside=True)
        for folder, sure in found
        if not sure or is_outside(folder, workspace)
    ]


def _resolved(arg: Arg, access: Access, folders: tuple[str, ...], workspace: str) -> list[PathFact]:
    found = []
    for folder in folders:
        for value in arg.values or ():
            if "\0" in value:
                found.append(PathFact(arg.text, access, outside=True))
                continue
            joined = os.path.join(folder, value)  # noqa: PTH118
            if is_stream(joined):
                continue
            if arg.pattern and _PATTERN.search(value):
                found.append(_pattern_fact(joined, access, workspace))
            else:
                found.append(place_fact(joined, folder, access, workspace))
    return found


def _pattern_fact(path: str, access: Access, workspace: str) -> PathFact:
    """A pattern, which is outside if the folder is, or one of the names there leads outside."""
    at = _PATTERN.search(path)
    assert at is not None
    head, _, tail = path[: at.start()].rpartition("/")
    folder, sure = real_place(head or "/")
    pattern = tail + path[at.start() :]
    steps = [step for step in pattern.split("/") if step not in ("", ".")]
    # `.*` is also `..` for bash before 5.2.
    outside = (
        not sure
        or is_outside(folder, workspace)
        or any(step.startswith(".") and fnmatch.fnmatchcase("..", _widened(step)) for step in steps)
    )
    pattern = "/".join(steps)
    names: list[str] = []
    if not is_outside(folder, workspace):
        outside = _leads_outside(folder, pattern, workspace, access, names) or outside
    return PathFact(f"{folder.rstrip('/')}/{pattern}", access, outside, tuple(names))


def _widened(step: str) -> str:
    """Brackets as `*`: those of the shell know classes and `^`, and quoted ones are no pattern."""
    return step[: at.start()] + "*" if (at := re.search(r"[\[\\]", step)) else step


def _leads_outside(folder: str, pattern: str, workspace: str, access: Access, names: list[str]) -> bool:
    """Whether a link that the pattern may match leads out; unsure, it does. Deeper levels: any folder's links."""
    first, _, rest = pattern.partition("/")
    try:
        with os.scandir(folder) as entries:
            for count, entry in enumerate(entries):
                if count >= MAX_GLOB:
                    return True
                if not fnmatch.fnmatchcase(entry.name, _widened(first)):
                    continue
                if entry.is_symlink() and _leads_away(entry.path, workspace):
                    return True
                if access == "write" and not rest and has_other_names(entry.path):
                    return True
                if not rest:
                    names.append(real_place(entry.path)[0])
                elif entry.is_dir() and _leads_outside(entry.path, rest, workspace, access, names):
                    return True
    except OSError:
        return False  # no such folder: the shell passes the pattern on as it is
    return False


def leads_out(folder: str, workspace: str) -> bool:
    """Whether a link anywhere below a folder leads out of the workspace; also if there is too much to look at."""
    pending, count = [folder], 0
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    count += 1
                    if count > MAX_TREE:
                        return True
                    if entry.is_symlink() and _leads_away(entry.path, workspace):
                        return True
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
        except OSError:
            continue
    return False


def words_that_lead_out(words: Sequence[Arg], scope: Scope, workspace: str, access: Access) -> list[PathFact]:
    """Links that lead out, named in a word that does not look like a path: `-Clink`, `--directory=link`, `link`."""
    found: list[PathFact] = []
    for arg in words:
        for value in arg.values or ():
            for name in _inner_names(value):
                found += [
                    PathFact(real_place(place)[0], access, outside=True)
                    for folder in scope.folders or ()
                    if os.path.islink(place := os.path.join(folder, name))  # noqa: PTH114, PTH118
                    and _leads_away(place, workspace)
                ]
    return found


def _inner_names(value: str) -> list[str]:
    if len(value) > _LONGEST_NAME or "\0" in value or "/" in value:
        return []  # with a slash it is seen as a path
    if not value.startswith("-"):
        return [value, value.partition("=")[2]] if "=" in value else [value]
    if value.startswith("--"):
        return [value.partition("=")[2]] if "=" in value else []
    return [value[at:] for at in range(2, min(len(value), 12))]


def names_options(arg: Arg, scope: Scope) -> bool:
    """Whether a pattern may become an option: a file is named like one, or may be by now."""
    if not arg.pattern:
        return arg.may_be_option()
    if arg.values is None or scope.folders is None:
        return True
    if all(not _PATTERN.match(value[:1]) and not value.startswith("-") for value in arg.values):
        return False
    if scope.wrote or any(value.startswith("-") for value in arg.values):
        return True
    return any(_has_dash(folder) for folder in scope.folders)


def _has_dash(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(
                entry.name.startswith("-") or " -" in entry.name or count >= MAX_GLOB
                for count, entry in enumerate(entries)
            )
    except OSError:
        return False
