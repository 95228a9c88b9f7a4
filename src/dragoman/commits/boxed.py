"""The clone that a boxed session works in: git in its box commits, and the commit is taken into the repository."""

from __future__ import annotations

import os

from dragoman.checkpoints.names import shown
from dragoman.commits.committing import clean_message
from dragoman.commits.selection import choose
from dragoman.gateway.ports.checkpoints import Touched
from dragoman.gateway.ports.commits import CommitError, CommitPlan, Committed, CommitWish
from dragoman.worktrees.records import Record
from dragoman.worktrees.repository import Repository

MOST_NAMES = 100_000
"""Bytes of all paths: they are words of a command."""


class BoxedClone:
    def __init__(self, repository: Repository, record: Record) -> None:
        self._repository = repository
        self._record = record

    def plan(self, wish: CommitWish, touched: Touched | None) -> CommitPlan:
        record = self._record
        state = self._repository.clone(record).state()
        if state.branch != record.branch:
            raise CommitError(
                f"{record.folder} has {state.branch or 'no branch'} checked out instead of {record.branch}",
                "other_branch",
            )
        changed = [name for name in state.changed if not name.endswith(b"/")]
        names, left = choose(changed, record.folder, wish, touched)
        return CommitPlan(
            root=record.folder,
            branch=record.branch,
            head=state.commit,
            names=tuple(names),
            files=tuple(shown(name) for name in names),
            left=tuple(shown(name) for name in left),
        )

    def commit(self, plan: CommitPlan, message: str, *, hooks: bool) -> Committed:
        """Commit in the box; hooks of a clone are off there, and run nowhere else."""
        if hooks:
            raise CommitError(
                f"{plan.root} belongs to a boxed session, whose hooks do not run outside of its sandbox",
                "boxed",
            )
        if sum(map(len, plan.names)) > MOST_NAMES:
            raise CommitError(
                f"There are too many files for one command in a sandbox: `dragoman worktrees merge {self._record.name} "
                "-m TEXT` commits all",
                "too_many_files",
            )
        repository, record = self._repository, self._record
        clone = repository.clone(record)
        names = [os.fsdecode(name) for name in plan.names]
        clone.commit(clean_message(message), repository.author, names)
        new = clone.state().commit
        clone.send(repository.view(), [new])
        ref = f"refs/heads/{record.branch}"
        repository.set_ref(ref, new, repository.tip(ref), "commit")
        return Committed(new, plan.branch, list(plan.files), list(plan.left))
