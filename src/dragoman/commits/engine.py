"""What is not committed in a project, and commits; blocking, for threads and commands."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dragoman.checkpoints.capture import own_pattern
from dragoman.checkpoints.git import find_git
from dragoman.commits import committing, hooked, uncommitted
from dragoman.commits.boxed import BoxedClone
from dragoman.commits.checkout import Checkout
from dragoman.commits.pull_requests import open_pull_request, plan_pull_request
from dragoman.commits.pushing import push
from dragoman.commits.remotes import plan_push
from dragoman.commits.selection import make_plan
from dragoman.commits.snapshot import Limits
from dragoman.config.sections.checkpoints import CheckpointsConfig
from dragoman.gateway.ports.checkpoints import Touched
from dragoman.gateway.ports.commits import (
    CommitError,
    CommitPlan,
    Committed,
    CommitWish,
    PullRequestPlan,
    Pushed,
    PushPlan,
    Uncommitted,
)
from dragoman.gateway.ports.worktrees import WorktreeError
from dragoman.worktrees.boxed import Enter
from dragoman.worktrees.records import Record, Records
from dragoman.worktrees.repository import Repository

NO_GIT = "There is no program `git` on the PATH: install git"


class Engine:
    def __init__(self, state: Path, limits: CheckpointsConfig, enter: Enter | None = None) -> None:
        """`state` is the state folder, which is never committed; `enter` runs commands in the boxes of sessions."""
        self._enter = enter
        self._state = state
        self._limits = Limits(limits.max_files, limits.max_file_bytes, limits.max_bytes)
        self._records = Records(state / "worktrees")
        self._program = find_git()

    def uncommitted(self, root: str) -> Uncommitted:
        with self._explained(root):
            return uncommitted.changes(self._checkout(root), self._limits, self._own(root))

    def patch(self, root: str) -> bytes:
        """The same as a patch that `git apply` takes."""
        with self._explained(root):
            return uncommitted.patch(self._checkout(root), self._limits, self._own(root))

    # -- commits, pushes, pull requests

    def plan(self, root: str, wish: CommitWish, touched: Touched | None) -> CommitPlan:
        with self._explained(root):
            boxed = self._boxed(root)
            if boxed is not None:
                return boxed.plan(wish, touched)
            return make_plan(self._checkout(root), wish, touched, self._limits, self._own(root))

    def commit(self, plan: CommitPlan, message: str, *, hooks: bool) -> Committed:
        with self._explained(plan.root):
            if not plan.names:
                raise committing.nothing_to_commit(plan.root)
            boxed = self._boxed(plan.root)
            if boxed is not None:
                return boxed.commit(plan, message, hooks=hooks)
            checkout = self._checkout(plan.root)
            if hooks:
                return hooked.commit(checkout, plan, message)
            return committing.commit(checkout, plan, message, self._limits)

    def plan_push(self, root: str) -> PushPlan:
        with self._explained(root):
            record = self._clone_at(root)
            if record is not None:
                return plan_push(self._checkout(record.repository), record.branch)
            return plan_push(self._checkout(root))

    def push(self, plan: PushPlan, *, hooks: bool) -> Pushed:
        with self._explained(plan.root):
            return push(self._checkout(plan.root), plan, hooks=hooks)

    def plan_pull_request(self, plan: PushPlan, wish: CommitWish) -> PullRequestPlan:
        with self._explained(plan.root):
            return plan_pull_request(self._checkout(plan.root), plan, wish)

    def open_pull_request(self, plan: PullRequestPlan) -> str:
        with self._explained(plan.words[0]):
            return open_pull_request(plan)

    # -- the rest

    def _checkout(self, root: str) -> Checkout:
        if self._program is None:
            raise CommitError(NO_GIT, "no_git")
        if not os.path.isdir(root):  # noqa: PTH112 (Path.is_dir raises for a path that is too long)
            raise CommitError(f"The folder {root} does not exist any more", "folder_missing")
        if os.path.realpath(root) != root:
            raise CommitError(f"{root} is a symlink now, or below one: put the folder back", "other_folder")
        if self._clone_at(root) is not None:
            raise CommitError(
                f"{root} is the clone of a boxed session, which git reads in its sandbox alone: `dragoman changes` "
                "shows what the session changed",
                "boxed",
            )
        return Checkout(self._program, root)

    def _clone_at(self, root: str) -> Record | None:
        """The worktree whose folder it is, if that is a clone."""
        return next((one for one in self._records.all() if one.form == "clone" and one.folder == root), None)

    def _boxed(self, root: str) -> BoxedClone | None:
        record = self._clone_at(root)
        if record is None:
            return None
        if self._program is None:
            raise CommitError(NO_GIT, "no_git")
        view = self._records.home(record.repository) / ".view"
        return BoxedClone(Repository(self._program, record.repository, view, self._enter), record)

    def _own(self, root: str) -> str | None:
        return own_pattern(root, self._state)

    @contextmanager
    def _explained(self, root: str) -> Iterator[None]:
        try:
            yield
        except WorktreeError as error:
            raise CommitError(str(error), error.code, error.paths) from error
        except OSError as error:
            raise CommitError(
                f"The repository of {root} cannot be read or written: {error.filename or ''} {error.strerror}",
                "io_failed",
            ) from error
