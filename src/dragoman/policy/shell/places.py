"""Paths of a command: absolute, through symlinks, inside the workspace or not."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Sequence
from functools import lru_cache

from dragoman.policy.act import Access, PathFact
from dragoman.policy.shell.limits import MAX_GLOB, MAX_TREE
from dragoman.policy.shell.values import Arg, Scope

_STREAMS = frozenset(
    {"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/urandom"}
)
_STREAM = re.compile(r"/dev/fd/[0-9]+")
_PATTERN = re.compile(r"[*?\[]")
_LONGEST_NAME = 255


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


def facts_of(arg: Arg, access: Access, scope: Scope, workspace: str) -> list[PathFact]:
    """What an argument that is a path may name."""
    if arg.values is None or scope.folders is None:
        if arg.values is not None and all(value.startswith("/") for value in arg.values):
            return _resolved(arg, access, ("/",), workspace)
        return [PathFact(arg.text, access, outside=True)]
    return _resolved(arg, access, scope.folders, workspace)


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
                path = os.path.realpath(joined)
                found.append(PathFact(path, access, is_outside(path, workspace)))
    return found


def _pattern_fact(path: str, access: Access, workspace: str) -> PathFact:
    """A pattern, which is outside if the folder is, or one of the names there leads outside."""
    at = _PATTERN.search(path)
    assert at is not None
    head, _, tail = path[: at.start()].rpartition("/")
    folder = os.path.realpath(head or "/")
    pattern = tail + path[at.start() :]
    steps = [step for step in pattern.split("/") if step not in ("", ".")]
    # `.*` is also `..` for bash before 5.2.
    outside = is_outside(folder, workspace) or any(
        step.startswith(".") and fnmatch.fnmatchcase("..", _widened(step)) for step in steps
    )
    pattern = "/".join(steps)
    if not outside:
        outside = _leads_outside(folder, pattern, workspace)
    return PathFact(f"{folder.rstrip('/')}/{pattern}", access, outside)


def _widened(step: str) -> str:
    """Brackets as `*`: those of the shell know classes and `^`, and quoted ones are no pattern."""
    return step[: at.start()] + "*" if (at := re.search(r"[\[\\]", step)) else step


def _leads_outside(folder: str, pattern: str, workspace: str) -> bool:
    """Whether a symlink that the pattern may match leads out; unsure, it does. Deeper levels: any folder's links."""
    first, _, rest = pattern.partition("/")
    try:
        with os.scandir(folder) as entries:
            for count, entry in enumerate(entries):
                if count >= MAX_GLOB:
                    return True
                if not fnmatch.fnmatchcase(entry.name, _widened(first)):
                    continue
                if entry.is_symlink() and is_outside(os.path.realpath(entry.path), workspace):
                    return True
                if rest and entry.is_dir() and _leads_outside(entry.path, rest, workspace):
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
                    if entry.is_symlink() and is_outside(os.path.realpath(entry.path), workspace):
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
                    PathFact(os.path.realpath(place), access, outside=True)
                    for folder in scope.folders or ()
                    if os.path.islink(place := os.path.join(folder, name))  # noqa: PTH114, PTH118
                    and is_outside(os.path.realpath(place), workspace)
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
