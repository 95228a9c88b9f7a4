"""Repositories inside the workspace that are not its own: their settings may run programs.

An archive or a copy brings a `.git` with it, whose `config` and hooks `git status` would run. What `git clone` writes
into a `config` is known; anything else counts as something that runs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from dragoman.policy.shell.programs.names import names

_LONGEST = 65536
_KNOWN = names(
    """
    core.repositoryformatversion core.filemode core.bare core.logallrefupdates core.ignorecase core.symlinks
    core.precomposeunicode core.autocrlf core.eol core.longpaths remote.url remote.fetch remote.pushurl remote.tagopt
    remote.mirror remote.prune remote.promisor remote.partialclonefilter branch.remote branch.merge branch.rebase
    branch.description user.name user.email submodule.url submodule.active init.defaultbranch pull.rebase gc.auto
    extensions.objectformat extensions.partialclone lfs.repositoryformatversion
    """
)
_SECTION = re.compile(r'\[([A-Za-z0-9-]+)(?:\s+"[^"\\]*")?\]')
_SETTING = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*([^\\\n]*))?")


def is_doubtful(folder: str, workspace: str) -> bool:
    """Whether git in this folder would use settings of a repository inside the workspace that may run something."""
    inside = workspace.rstrip("/") + "/"
    if not workspace or not folder.startswith(inside):  # most lines: nothing is looked up
        return False
    top = _top(folder)
    if top is None or not top.startswith(inside):
        return False
    place = Path(top, ".git")
    try:
        if place.is_dir():
            return _may_run(place)
        return not _is_of(place, _top(workspace))
    except (OSError, ValueError):
        return True


def runs_nothing(place: str) -> bool:
    """Whether this is the `.git` of a repository with the settings of a fresh clone, and without hooks."""
    path = Path(place)
    try:
        whole = path.name == ".git" and not path.is_symlink() and (path / "config").is_file()
        return whole and not _may_run(path)
    except (OSError, ValueError):
        return False


def _top(folder: str) -> str | None:
    path = Path(folder)
    return next((str(each) for each in (path, *path.parents) if os.path.lexists(each / ".git")), None)


def _is_of(file: Path, top: str | None) -> bool:
    """Whether a `.git` file leads into the repository of the workspace: a submodule, or another working tree."""
    found = re.fullmatch(r"gitdir: ([^\n]+)\n?", file.read_text()[:_LONGEST])
    if found is None or top is None:
        return False
    own = Path(top, ".git")
    if own.is_file() and (further := re.fullmatch(r"gitdir: ([^\n]+)\n?", own.read_text()[:_LONGEST])):
        own = Path(top, further[1])
        own = own.parent.parent if own.parent.name == "worktrees" else own
    place, own = Path(file.parent, found[1]).resolve(), own.resolve()
    return any(place.is_relative_to(own / name) for name in ("modules", "worktrees"))


def _may_run(place: Path) -> bool:
    if any(os.path.lexists(place / name) for name in ("config.worktree", "commondir")):
        return True
    with suppress(FileNotFoundError):
        if any(hook.suffix != ".sample" for hook in (place / "hooks").iterdir()):
            return True
    try:
        with (place / "config").open() as file:
            text = file.read(_LONGEST + 1)
    except FileNotFoundError:
        return False
    return len(text) > _LONGEST or not all(
        name in _KNOWN and "::" not in value for name, value in _settings(text)
    )


def _settings(text: str) -> Iterator[tuple[str, str]]:
    """Each setting as `section.name`, and its value; an unknown name for a line that is none."""
    section = ""
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            continue
        if found := _SECTION.fullmatch(stripped):
            section = found[1].lower()
        elif found := _SETTING.fullmatch(stripped):
            yield f"{section}.{found[1].lower()}", found[2] or ""
        else:
            yield "", ""
