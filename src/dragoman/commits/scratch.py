"""A git directory of ours for one look at a project: its objects, and of its configuration what only names data.

Everything that compares or stores files goes through it. No filter, hook, external diff, fsmonitor or remote of the
repository is in its configuration, so that git has nothing to run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dragoman.checkpoints.git import Program, Running
from dragoman.commits.settings import Settings
from dragoman.worktrees.git import View

CONFIG = """[core]
\tbare = false
\tfsmonitor = false
\tuntrackedcache = false
\tsplitindex = false
\tsafecrlf = false
\thookspath = /dev/null
[gc]
\tauto = 0
[maintenance]
\tauto = false
[diff]
\texternal =
\tignoresubmodules = dirty
[push]
\tgpgsign = false
\tfollowtags = false
\trecursesubmodules = no
[fastimport]
\tunpacklimit = 100
"""
FLEETING = "[core]\n\tfsync = none\n\tcompression = 1\n"
COPIED = ("core.filemode", "core.ignorecase", "core.autocrlf", "core.eol", "core.sharedrepository")
"""Settings of the repository that change what git stores, and run nothing."""
FILES = {"core.excludesfile": "ignore", "core.attributesfile": "attributes"}
"""Settings of the user alone that name files, and where these are if they are not set."""


class Scratch(View):
    """git with our configuration on the objects of a repository, in its work tree."""

    def __init__(
        self,
        program: Program,
        directory: Path,
        tree: str,
        objects: Path,
        more: tuple[Path, ...],
        author: tuple[str, str] = ("", ""),
    ) -> None:
        """`objects` is where new ones go; those in `more` are found too."""
        super().__init__(program, directory, objects, author=author)
        self.tree = tree
        self._alternates = more

    def environment(self, index: Path | None = None, tree: str | None = None) -> dict[str, str]:
        found = super().environment(index, tree)
        found["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = ":".join(_quoted(str(path)) for path in self._alternates)
        if "TZ" in os.environ:
            found["TZ"] = os.environ["TZ"]
        return found

    @contextmanager
    def started(self, *words: str, index: Path | None = None, tree: str | None = None) -> Iterator[Running]:
        with super().started(*words, index=index, tree=tree or self.tree) as running:
            yield running


def make_scratch(directory: Path, settings: Settings, common: Path, *, keep: bool) -> None:
    """Write the git directory; `common` is that of the repository. Objects that are not kept need not be durable."""
    for name in ("refs", "objects", "info"):
        (directory / name).mkdir(mode=0o700)
    (directory / "HEAD").write_bytes(b"ref: refs/heads/none\n")
    config = CONFIG + "".join(_lines(settings)) + ("" if keep else FLEETING)
    (directory / "config").write_text(config, errors="surrogateescape")
    for name in ("info/exclude", "info/attributes", "shallow"):
        content = read_small(common / name)
        if content is not None:
            (directory / name).write_bytes(content)


def _lines(settings: Settings) -> Iterator[str]:
    sha256 = settings.get("extensions.objectformat") == "sha256"
    yield f"[core]\n\trepositoryformatversion = {int(sha256)}\n"
    for key in COPIED:
        if value := settings.get(key):
            yield f"\t{key.removeprefix('core.')} = {_value(value)}\n"
    for key, name in FILES.items():
        place = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
        value = settings.of_user(key) or f"{place}/git/{name}"
        yield f"\t{key.removeprefix('core.')} = {_value(_expanded(value))}\n"
    if sha256:
        yield "[extensions]\n\tobjectformat = sha256\n"


def _expanded(path: str) -> str:
    """git itself would look for `~` in the home of its environment, which is none."""
    return f"{Path.home()}{path[1:]}" if path.startswith("~/") else path


def _value(text: str) -> str:
    """A value in a git configuration file."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def _quoted(path: str) -> str:
    """A path in a list of paths."""
    if ":" not in path and not path.startswith('"'):
        return path
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


def read_small(path: Path, limit: int = 1 << 20) -> bytes | None:
    """A file of a git directory that an agent can write: no symlink or pipe; None if there is none, or it is large."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    content = b""
    try:
        while (piece := os.read(handle, 1 << 20)) and len(content) <= limit:
            content += piece
    except OSError:
        return None
    finally:
        os.close(handle)
    return content if len(content) <= limit else None
