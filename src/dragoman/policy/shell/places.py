"""Paths of a command: absolute, through symlinks, inside the workspace or not."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence

from dragoman.policy.act import Access, PathFact
from dragoman.policy.shell.limits import MAX_GLOB
from dragoman.policy.shell.patterns import PATTERN, pattern_fact
from dragoman.policy.shell.real_paths import Looks, has_other_names, is_outside, real_place
from dragoman.policy.shell.values import NUMBER, Arg, Scope

_STREAMS = frozenset(
    {"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/urandom"}
)
_STREAM = re.compile(r"/dev/fd/[0-2]")
_LONGEST_NAME = 255
_OWN = re.compile(r"/\.(?:git|dragoman)(?:/|$)", re.IGNORECASE)
"""Folders whose files choose what others run."""


def is_stream(path: str) -> bool:
    return path in _STREAMS or _STREAM.fullmatch(path) is not None


def place_fact(
    place: str, folder: str, access: Access, workspace: str, looks: Looks | None = None
) -> PathFact:
    """A path, which is outside also if it is another one for each process, or if its file has other names."""
    path, sure = (real_place if looks is None else looks.real_place)(place, folder)
    outside = not sure or is_outside(path, workspace) or (access == "write" and has_other_names(path))
    return PathFact(path, access, outside)


def not_known(text: str, access: Access) -> PathFact:
    """A path that cannot be told before the line runs."""
    return PathFact(text, access, outside=True, known=not text.startswith("/"))


def facts_of(arg: Arg, access: Access, scope: Scope, workspace: str) -> list[PathFact]:
    """What an argument that is a path may name."""
    if arg.values is None or scope.folders is None:
        if arg.values is not None and all(value.startswith("/") for value in arg.values):
            return _resolved(arg, access, ("/",), workspace, scope.looks)
        return [not_known(arg.text, access)]
    return _resolved(arg, access, scope.folders, workspace, scope.looks)


def folders_outside(scope: Scope, access: Access, workspace: str) -> list[PathFact]:
    """The folders that a program runs in and may read without naming them: those outside, and those of `.git`."""
    if scope.folders is None:
        return [not_known("(an unknown folder)", access)]
    # Not `real`, save for the workspace itself: a link may be there by now.
    found = [real_place(folder) for folder in scope.folders if folder != workspace]
    facts = []
    for folder, sure in found:
        outside = not sure or is_outside(folder, workspace)
        if outside or (access == "write" and _OWN.search(folder)):
            facts.append(PathFact(folder, access, outside))
    return facts


def _resolved(
    arg: Arg, access: Access, folders: tuple[str, ...], workspace: str, looks: Looks
) -> list[PathFact]:
    found = []
    for folder in folders:
        for value in arg.values or ():
            if "\0" in value or NUMBER in value:
                found.append(not_known(arg.text, access))
                continue
            joined = os.path.join(folder, value)  # noqa: PTH118
            if is_stream(joined):
                continue
            if arg.pattern and PATTERN.search(value):
                found.append(pattern_fact(joined, access, workspace, looks))
            else:
                found.append(place_fact(joined, folder, access, workspace, looks))
    return found


def words_that_are_files(
    words: Sequence[Arg], scope: Scope, workspace: str, access: Access, *, plain: bool
) -> list[PathFact]:
    """Links that lead out, named in words that do not look like paths: `-Clink`, `--file=link`. `plain`: files too."""
    found: list[PathFact] = []
    for arg in words:
        for value in arg.values or ():
            for name in _inner_names(value):
                for folder in scope.folders or ():
                    place = os.path.join(folder, name)  # noqa: PTH118
                    fact = _named_file(place, workspace, access, plain, scope.looks)
                    found += [fact] if fact is not None else []
    return found


def _named_file(place: str, workspace: str, access: Access, plain: bool, looks: Looks) -> PathFact | None:
    try:
        mode = os.lstat(place).st_mode
    except (OSError, ValueError):
        return None
    if stat.S_ISLNK(mode):
        path, sure = real_place(place)
        if not sure or is_outside(path, workspace):
            return PathFact(path, access, outside=True)
    elif not stat.S_ISREG(mode):
        return None
    return place_fact(place, "", "read", workspace, looks) if plain else None


def linked_from(target: Arg, source: Arg, scope: Scope) -> Arg:
    """What `ln -s source target` leads to: a relative path begins in the folder of the link."""
    made = []
    for folder in scope.folders or ():
        for place in target.values or ():
            link = os.path.join(folder, place)  # noqa: PTH118
            base = link if os.path.isdir(link) else os.path.dirname(link)  # noqa: PTH112, PTH120
            made += [os.path.join(base, value) for value in source.values or ()]  # noqa: PTH118
    known = source.values is not None and target.values is not None and scope.folders is not None
    return Arg(source.text, tuple(dict.fromkeys(made)) if known else None)


def facts_in_folder(
    target: Arg,
    sources: Sequence[Arg],
    scope: Scope,
    workspace: str,
    *,
    contents: bool,
    surely: bool = False,
) -> list[PathFact]:
    """What `cp a b folder` writes: files of the same names in the folder. `contents`: what is in a source instead.

    `surely`: the target is a folder, also if there is none yet.
    """
    found: list[PathFact] = []
    for folder in facts_of(target, "write", scope, workspace):
        if not folder.known or not (surely or os.path.isdir(folder.path)):  # noqa: PTH112
            continue
        for source in sources:
            for name in _copied_names(source, scope, contents):
                place = f"{folder.path.rstrip('/')}/{name}"
                if source.pattern and PATTERN.search(name):
                    found.append(pattern_fact(place, "write", workspace, scope.looks))
                else:
                    found.append(place_fact(place, "", "write", workspace, scope.looks))
    return found


def _copied_names(source: Arg, scope: Scope, contents: bool) -> Iterator[str]:
    """Names that a copy of something has. Of a pattern only one that finds hidden files: others are not protected."""
    for value in source.values or ():
        name = os.path.basename(value.rstrip("/"))  # noqa: PTH119
        if "\0" in value or (source.pattern and PATTERN.search(name) and not name.startswith(".")):
            continue
        if not contents and name not in ("", ".", ".."):
            yield name
            continue
        for folder in scope.folders or ():
            yield from _names_in(os.path.join(folder, value))  # noqa: PTH118


def _names_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry, _ in zip(entries, range(MAX_GLOB), strict=False)]
    except OSError:
        return []


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
    if all(not PATTERN.match(value[:1]) and not value.startswith("-") for value in arg.values):
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
