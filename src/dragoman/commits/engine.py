"""What is not committed in a project, and commits; blocking, for threads and commands."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dragoman.checkpoints.capture import own_pattern
from dragoman.checkpoints.git import find_git
from dragoman.commits import uncommitted
from dragoman.commits.checkout import Checkout
from dragoman.commits.snapshot import Limits
from dragoman.config.sections.checkpoints import CheckpointsConfig
from dragoman.gateway.ports.commits import CommitError, Uncommitted

NO_GIT = "There is no program `git` on the PATH: install git"


class Engine:
    def __init__(self, state: Path, limits: CheckpointsConfig) -> None:
        """`state` is the state folder, which is never committed."""
        self._state = state
        self._limits = Limits(limits.max_files, limits.max_file_bytes, limits.max_bytes)
        self._program = find_git()

    def uncommitted(self, root: str) -> Uncommitted:
        with self._explained(root):
            return uncommitted.changes(self._checkout(root), self._limits, self._own(root))

    def patch(self, root: str) -> bytes:
        """The same as a patch that `git apply` takes."""
        with self._explained(root):
            return uncommitted.patch(self._checkout(root), self._limits, self._own(root))

    def _checkout(self, root: str) -> Checkout:
        if self._program is None:
            raise CommitError(NO_GIT, "no_git")
        if not os.path.isdir(root):  # noqa: PTH112 (Path.is_dir raises for a path that is too long)
            raise CommitError(f"The folder {root} does not exist any more", "folder_missing")
        return Checkout(self._program, root)

    def _own(self, root: str) -> str | None:
        return own_pattern(root, self._state)

    @contextmanager
    def _explained(self, root: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CommitError(
                f"The repository of {root} cannot be read or written: {error.filename or ''} {error.strerror}",
                "io_failed",
            ) from error
