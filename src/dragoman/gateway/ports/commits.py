"""The interface to a project's own repository: what is not committed, and commits, pushes and pull requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Protocol

from msgspec import Meta, Struct

from dragoman.gateway.ports.checkpoints import Change, CheckpointError, LeftOut, Shared, Touched


class CommitError(CheckpointError):
    """The repository could not be read, or nothing was done; the text says why and what to do."""

    def __init__(self, message: str, code: str = "commit", paths: list[str] | None = None) -> None:
        super().__init__(message, code)
        self.paths = paths or []


class Uncommitted(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What differs between the last commit of a project and its files; files that git does not track count as added."""

    folder: str
    branch: str = ""
    """The branch that is checked out; empty for a detached head."""
    head: str = ""
    """The last commit; empty if there is none yet."""
    files: list[Change] = []
    left_out: list[LeftOut] = []
    more_left_out: int = 0


class CommitWish(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What to commit, and whether to push it and to open a pull request."""

    message: Annotated[
        str | None, Meta(description="The message; needed if there is something to commit.")
    ] = None
    turn: Annotated[int | None, Meta(description="Only files that this turn changed.")] = None
    all: Annotated[bool, Meta(description="Everything that is not committed, by the session or not.")] = False
    paths: Annotated[
        list[str],
        Meta(
            description="These files and folders, changed by the session or not, as `uncommitted` names them."
        ),
    ] = []
    shared: Annotated[
        Shared,
        Meta(description="Files that not only the session changed: `refuse`, `include` or `leave` them."),
    ] = "refuse"
    hooks: Annotated[
        bool, Meta(description="Let hooks, filters and signing run that the repository configures.")
    ] = False
    push: Annotated[bool, Meta(description="Push the branch to its remote.")] = False
    pull_request: Annotated[
        bool, Meta(description="Push the branch, and open a pull request with `gh` or `glab`.")
    ] = False
    base: Annotated[
        str | None,
        Meta(description="The branch that the pull request goes into, if not the remote's default one."),
    ] = None
    draft: bool = False


@dataclass(frozen=True)
class CommitPlan:
    """The files that a commit would have."""

    root: str
    branch: str
    head: str
    """The last commit; empty if there is none yet."""
    names: tuple[bytes, ...]
    files: tuple[str, ...]
    """The same for people."""
    left: tuple[str, ...] = ()
    """Files that not only the session changed, which are left out."""


class Committed(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A commit that was made."""

    commit: str
    branch: str
    files: list[str]
    left: list[str] = []
    """Files that not only the session changed, which were left out."""


@dataclass(frozen=True)
class PushPlan:
    """Where a branch would be pushed to."""

    root: str
    branch: str
    commit: str
    remote: str
    url: str
    """As the repository has it, also with a password."""
    shown: str
    """The same without a password."""
    host: str
    """Empty for a folder of this machine."""
    path: str
    """The project on that host, such as `owner/name`."""


class Pushed(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A branch that a remote has now."""

    remote: str
    url: str
    branch: str
    commit: str
    changed: bool = True
    """False if it had it before."""


@dataclass(frozen=True)
class PullRequestPlan:
    """The command that opens a pull request."""

    words: tuple[str, ...]
    program: str
    """Where it is; empty if it is not there."""
    title: str
    by_hand: str
    """What to do without the program."""


class PullRequest(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A pull request that was opened."""

    url: str
    title: str
    base: str = ""
    """The branch that it goes into; empty: the default one of the remote."""


class CommitResult(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What was done."""

    committed: Committed | None = None
    """None: there was nothing to commit."""
    pushed: Pushed | None = None
    pull_request: PullRequest | None = None


class Commits(Protocol):
    """`root` is the folder of the project, with `.git`; every call raises `CommitError`."""

    async def uncommitted(self, root: str) -> Uncommitted: ...

    async def patch(self, root: str) -> bytes:
        """What is not committed as a patch that `git apply` takes."""

    async def plan(self, root: str, wish: CommitWish, touched: Touched | None) -> CommitPlan:
        """The files that the wish means; `touched` are those of the session, None if it asks for others."""

    async def commit(self, plan: CommitPlan, message: str, *, hooks: bool) -> Committed: ...

    async def plan_push(self, root: str) -> PushPlan: ...

    async def push(self, plan: PushPlan, *, hooks: bool) -> Pushed: ...

    async def plan_pull_request(self, plan: PushPlan, wish: CommitWish) -> PullRequestPlan: ...

    async def open_pull_request(self, plan: PullRequestPlan) -> str:
        """Open it; returns its address."""
