"""git for worktrees: what a repository or an agent configures there is never run.

Two ways to call it, both with an environment of ours (`checkpoints/git.py`):

- `View`: a git directory of ours with our own configuration, and the repository's objects. Everything that reads or
  writes file contents (checkout, status, add, merge) goes through it: there are no filters, hooks, merge drivers,
  external diffs or fsmonitor, because no configuration names one.
- `Project`: the repository's own git directory, for its refs alone. Its configuration is read, but hooks are off and no
  protocol is allowed, so that a missing object starts no transport.
"""

from __future__ import annotations

import os
from pathlib import Path

from dragoman.checkpoints.git import Git, Program
from dragoman.gateway.ports.worktrees import WorktreeError

CONFIG = b"""[core]
\trepositoryformatversion = %d
\tbare = false
\tfsmonitor = false
\tuntrackedcache = false
\thookspath = /dev/null
\tattributesfile = /dev/null
\texcludesfile = /dev/null
[gc]
\tauto = 0
[maintenance]
\tauto = false
[diff]
\texternal =
\trenames = false
[merge]
\trenames = true
[checkout]
\tworkers = 0
"""
FORMAT = b"[extensions]\n\tobjectformat = sha256\n"
OFF = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.sshCommand": "false",
    "core.editor": "false",
    "credential.helper": "",
    "commit.gpgSign": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
}


class Project(Git):
    """A repository's own git directory, for its refs."""

    def environment(self, index: Path | None = None, tree: str | None = None) -> dict[str, str]:
        found = super().environment(index, tree)
        found["GIT_ALLOW_PROTOCOL"] = "none"
        found["GIT_CONFIG_COUNT"] = str(len(OFF))
        for number, (key, value) in enumerate(OFF.items()):
            found[f"GIT_CONFIG_KEY_{number}"] = key
            found[f"GIT_CONFIG_VALUE_{number}"] = value
        return found


class View(Git):
    """A git directory of ours over the objects of a repository."""

    def __init__(
        self,
        program: Program,
        directory: Path,
        objects: Path,
        more: Path | None = None,
        author: tuple[str, str] = ("", ""),
    ) -> None:
        super().__init__(program, directory)
        self._objects = objects
        self._more = more
        self._author = author

    def environment(self, index: Path | None = None, tree: str | None = None) -> dict[str, str]:
        found = super().environment(index, tree)
        found["GIT_OBJECT_DIRECTORY"] = str(self._objects)
        found["GIT_ALLOW_PROTOCOL"] = "none"
        if self._more is not None:
            found["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = str(self._more)
        for role in ("AUTHOR", "COMMITTER"):
            found[f"GIT_{role}_NAME"] = self._author[0] or "dragoman"
            found[f"GIT_{role}_EMAIL"] = self._author[1] or "dragoman@localhost"
        return found


def make_view(directory: Path, sha256: bool) -> None:
    """Write the git directory of a view; an existing one is written again."""
    for folder in ("refs", "objects"):
        (directory / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    (directory / "HEAD").write_bytes(b"ref: refs/heads/none\n")
    (directory / "config").write_bytes(CONFIG % int(sha256) + (FORMAT if sha256 else b""))


def git_directories(root: str) -> tuple[Path, Path]:
    """The git directory of a checkout, and the one that all checkouts of its repository share; without running git."""
    place = Path(root, ".git")
    if place.is_dir():
        return place, place
    if not place.is_file():
        if all(Path(root, name).exists() for name in ("HEAD", "objects", "refs")):
            raise WorktreeError(
                f"{root} is a bare repository, without files to work on: clone it first", "bare_repository"
            )
        raise WorktreeError(
            f"{root} is no git repository: `git init` and a first commit make it one",
            "no_repository",
        )
    try:
        named = place.read_text().removeprefix("gitdir:").strip()
        own = Path(root, named).resolve()
        shared = own / "commondir"
        common = (own / shared.read_text().strip()).resolve() if shared.is_file() else own
    except (OSError, ValueError) as error:
        raise WorktreeError(f"{place} cannot be read: {error}", "no_repository") from error
    return own, common


def read_ref(directory: Path, ref: str, depth: int = 5) -> str:
    """A ref of a git directory that an agent can write: read as data, without git; empty if there is none."""
    text = _small(directory / ref)
    if text.startswith("ref: ") and depth:
        target = text[5:].strip()
        return read_ref(directory, target, depth - 1) if _is_plain(target) else ""
    if text.strip():
        return text.strip() if is_id(text.strip()) else ""
    for line in _small(directory / "packed-refs", 1 << 24).splitlines():
        value, _, name = line.partition(" ")
        if name == ref and is_id(value):
            return value
    return ""


def head_branch(directory: Path) -> str:
    """The branch that a git directory has checked out; empty for a detached head."""
    text = _small(directory / "HEAD").strip()
    return text.removeprefix("ref: refs/heads/") if text.startswith("ref: refs/heads/") else ""


def _small(path: Path, limit: int = 4096) -> str:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(handle, limit).decode(errors="replace")
    except OSError:
        return ""
    finally:
        os.close(handle)


def _is_plain(ref: str) -> bool:
    return ref.startswith("refs/") and ".." not in ref.split("/") and "\0" not in ref


def is_id(text: str) -> bool:
    return len(text) in (40, 64) and all(letter in "0123456789abcdef" for letter in text)
