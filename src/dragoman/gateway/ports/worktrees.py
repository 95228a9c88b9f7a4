"""The interface to worktrees: a folder and a branch of its own for a session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from msgspec import Struct

Form = Literal["linked", "clone"]
State = Literal["ready", "unfinished", "missing"]
"""Usable; left by a process that ended while it made or removed it; its folder is gone."""


class WorktreeError(Exception):
    """A worktree could not be made, merged or removed; the text says why and what to do."""

    def __init__(self, message: str, code: str = "worktree", paths: list[str] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.paths = paths or []


class Worktree(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A worktree as it is now."""

    name: str
    branch: str
    repository: str
    folder: str
    form: Form
    state: State
    session: str | None = None
    into: str = ""
    """The branch that it began on; empty if none was checked out."""
    kept: bool = False
    uncommitted: int = 0
    """Files that differ from its last commit, or are not in it."""
    unmerged: int = 0
    """Commits that the branch it began on does not have."""
    bytes: int = 0
    unknown: str = ""
    """Why it cannot be told what it holds; then the two counts are zero."""

    @property
    def loses(self) -> str:
        """What would be lost with it, in words; empty if nothing."""
        parts = [f"files that cannot be looked at: {self.unknown}"] if self.unknown else []
        if self.uncommitted:
            parts.append(f"{self.uncommitted} file{'s' if self.uncommitted > 1 else ''} not committed")
        if self.unmerged:
            parts.append(f"{self.unmerged} commit{'s' if self.unmerged > 1 else ''} not merged")
        return " and ".join(parts)


class Merged(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a merge or a rebase did."""

    name: str
    commit: str
    into: str
    files: list[str] = []


class Cleaned(Struct, frozen=True, rename="camel"):
    """What was removed, and what stays and why."""

    removed: list[str] = []
    left: dict[str, str] = {}


@dataclass(frozen=True)
class WorktreeWish:
    """What a new session asks for."""

    name: str | None = None
    """None: made of `title`."""
    title: str = ""
    setup: bool = False
    """A person approved the commands of `worktrees.setup`."""


@dataclass(frozen=True)
class BoxChoice:
    """What chooses the box of a session."""

    agent: str
    sandbox: str


@dataclass(frozen=True)
class RecordedTree:
    """The files of a session's project as a checkpoint recorded them."""

    store: str
    """The git directory that holds the objects."""
    tree: str
    time: str
    left_out: frozenset[str] = frozenset()
    """Paths that the checkpoint does not hold."""


class Made(Struct, frozen=True):
    """A new worktree: the folder for the session, and what there is to tell."""

    name: str
    folder: str
    repository: str
    branch: str
    cwd: str
    notices: list[str] = []
    waits: bool = False
    """The commands of `worktrees.setup` wait for approval."""


class Worktrees(Protocol):
    """`by` is the identity that asks for something; the audit names it."""

    def wanted(self, cwd: str) -> bool:
        """Whether the settings give sessions in this folder a worktree."""

    async def create(
        self, session_id: str, cwd: str, wish: WorktreeWish, *, box: BoxChoice | None, by: str
    ) -> Made:
        """Make a worktree for a session that is being created; raises `WorktreeError`."""

    async def fork(
        self,
        session_id: str,
        original: str,
        cwd: str,
        wish: WorktreeWish,
        recorded: RecordedTree | None = None,
        *,
        box: BoxChoice | None,
        by: str,
    ) -> Made | None:
        """Make a worktree for a fork, with the files that the original session's worktree has now, or those recorded.

        `cwd` is the original's. None if the original has no worktree; raises `WorktreeError`.
        """

    async def setup_lines(self, session_id: str) -> list[str]:
        """The commands that prepare the worktree of a session, as far as its repository's settings are trusted."""

    async def set_up(self, session_id: str, lines: list[str], by: str) -> None:
        """Run approved commands in the worktree of a session, in its box if it has one; raises `WorktreeError`."""

    async def all(self, repository: str | None = None) -> list[Worktree]: ...

    async def merge(
        self, name: str, repository: str | None, message: str | None, into: str | None, by: str
    ) -> Merged:
        """Merge its branch into the one that is checked out in the repository; raises `WorktreeError`."""

    async def rebase(self, name: str, repository: str | None, by: str) -> Merged: ...

    async def keep(self, name: str, repository: str | None) -> Worktree:
        """Leave it where it is, whatever happens to its session."""

    async def discard(self, name: str, repository: str | None, by: str, *, force: bool = False) -> Worktree:
        """Remove folder and branch; without `force` raises if something would be lost."""

    async def sessions(self) -> list[str]:
        """Sessions that have a worktree, or had one that can be made again."""

    async def again(self, session_id: str, folder: str) -> list[str]:
        """Make the worktree of a session that is continued, if it was removed; returns what there is to tell.

        Raises `WorktreeError` if it cannot be made, or if the folder belongs to another session now.
        """

    async def clean(self, live: list[str], by: str, *, stored: list[str]) -> Cleaned:
        """Remove all without a session in `live` that hold nothing of their own, and remains of crashes.

        A session in `stored` gets its worktree again when it is continued.
        """

    async def session_deleted(self, session_id: str, by: str, *, discard: bool = False) -> Worktree | None:
        """Remove the worktree of a deleted session; if it would lose something it stays and is returned."""
