"""Paths of a command: absolute, through symlinks, inside the workspace or not."""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Iterator, Sequence
from functools import lru_cache

from dragoman.policy.act import Access, PathFact
from dragoman.policy.shell.limits import MAX_GLOB, MAX_TREE
from dragoman.policy.shell.values import NUMBER, Arg, Scope

_STREAMS = frozenset(
    {"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/urandom"}
)
_STREAM = re.compile(r"/dev/fd/[0-2]")
_PATTERN = re.compile(r"[*?\[]")
_WIDE = re.compile(r"[*?\[\\]")
_LONGEST_NAME = 255
_PROCESS = re.compile(r"/proc/(?:self|thread-self|[0-9]+)(?:/task/[0-9]+)?")
_MOST_LINKS = 40
_OWN = re.compile(r"/\.(?:git|dragoman)(?:/|$)", re.IGNORECASE)
"""Folders whose files choose what others run."""


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


def not_known(text: str, access: Access) -> PathFact:
    """A path that cannot be told before the line runs."""
    return PathFact(text, access, outside=True, known=not text.startswith("/"))


def facts_of(arg: Arg, access: Access, scope: Scope, workspace: str) -> list[PathFact]:
    """What an argument that is a path may name."""
    if arg.values is None or scope.folders is None:
        if arg.values is not None and all(value.startswith("/") for value in arg.values):
            return _resolved(arg, access, ("/",), workspace)
        return [not_known(arg.text, access)]
    return _resolved(arg, access, scope.folders, workspace)


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


def _resolved(arg: Arg, access: Access, folders: tuple[str, ...], workspace: str) -> list[PathFact]:
    found = []
    for folder in folders:
        for value in arg.values or ():
            if "\0" in value or NUMBER in value:
                found.append(not_known(arg.text, access))
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
    steps = [step for step in (tail + path[at.start() :]).split("/") if step not in ("", ".")]
    names = _Names(workspace, access)
    names.expand(folder, steps)
    # `.*` is also `..` for bash before 5.2.
    outside = not sure or is_outside(folder, workspace) or names.lead_out or any(map(_is_upwards, steps))
    pattern = "/".join(steps)
    return PathFact(
        f"{folder.rstrip('/')}/{pattern}", access, outside, tuple(names.found), more=names.more or not sure
    )


def folder_of_pattern(path: str) -> str:
    """The folder in which the names of a pattern are looked for."""
    at = _PATTERN.search(path)
    return path if at is None else path[: at.start()].rpartition("/")[0] or "/"


def _is_upwards(step: str) -> bool:
    return step.startswith(".") and fnmatch.fnmatchcase("..", _widened(step))


def _widened(step: str) -> str:
    """Brackets as `*`: those of the shell know classes and `^`, and quoted ones are no pattern."""
    return step[: at.start()] + "*" if (at := re.search(r"[\[\\]", step)) else step


class _Names:
    """The files that a pattern stands for now. A wildcard counts for hidden files too: the shell may be set so."""

    def __init__(self, workspace: str, access: Access) -> None:
        self._workspace = workspace
        self._access = access
        self._looked = 0
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
                    self._looked += 1
                    if count >= MAX_GLOB or self._looked > MAX_TREE:
                        self.more = self.lead_out = True
                        return
                    yield entry
        except OSError:
            return  # no such folder: the shell passes the pattern on as it is


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
                    fact = _named_file(place, workspace, access, plain)
                    found += [fact] if fact is not None else []
    return found


def _named_file(place: str, workspace: str, access: Access, plain: bool) -> PathFact | None:
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
    return place_fact(place, "", "read", workspace) if plain else None


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
                if source.pattern and _PATTERN.search(name):
                    found.append(_pattern_fact(place, "write", workspace))
                else:
                    found.append(place_fact(place, "", "write", workspace))
    return found


def _copied_names(source: Arg, scope: Scope, contents: bool) -> Iterator[str]:
    """Names that a copy of something has. Of a pattern only one that finds hidden files: others are not protected."""
    for value in source.values or ():
        name = os.path.basename(value.rstrip("/"))  # noqa: PTH119
        if "\0" in value or (source.pattern and _PATTERN.search(name) and not name.startswith(".")):
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
