"""The interface to a project's own repository: what is not committed, and commits, pushes and pull requests."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from dragoman.gateway.ports.checkpoints import Change, CheckpointError, LeftOut


class CommitError(CheckpointError):
    """The repository could not be read, or nothing was committed; the text says why and what to do."""

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


class Commits(Protocol):
    """`root` is the folder of the project, with `.git`; every call raises `CommitError`."""

    async def uncommitted(self, root: str) -> Uncommitted: ...

    async def patch(self, root: str) -> bytes:
        """What is not committed as a patch that `git apply` takes."""
