"""Merges with the user's own git, if a person allows hooks, filters, merge drivers and signing.

It runs in the user's environment and with all settings, like `git merge` on a command line. If it fails, it is aborted.
"""

from __future__ import annotations

import os
import subprocess

from dragoman.gateway.ports.worktrees import Merged, WorktreeError
from dragoman.worktrees.merging import changed_files, check_changes, commit_all, target_of
from dragoman.worktrees.records import Record
from dragoman.worktrees.repository import Repository
from dragoman.worktrees.status import look

PATIENCE = 600.0
"""Seconds for one call: a hook may run tests."""
TOLD = 2000


def merge(repository: Repository, record: Record, message: str | None, into: str | None) -> Merged:
    """Merge the worktree's branch as `git merge` does; hooks of the repository run. A failure changes nothing."""
    target, before = target_of(repository, record, into), repository.head()
    if record.form == "linked" and message:
        _commit(repository, record, message)
    tip = commit_all(repository, record, message)
    repository.check_submodules(tip, f"merge {record.branch} with git")
    words = f"Merge branch '{record.branch}' into {target}"
    try:
        _git(repository, repository.root, "merge", "--no-edit", "-m", words, record.branch)
    except WorktreeError:
        if (repository.own / "MERGE_HEAD").exists():
            _git(repository, repository.root, "merge", "--abort")
        raise
    after = repository.head()
    return Merged(record.name, after, target, changed_files(repository.view(), before, after))


def _commit(repository: Repository, record: Record, message: str) -> None:
    with look(repository, record) as content:
        check_changes(content.changed, record, message)
        if not content.changed:
            return
    excluded = [f":(exclude,top,literal){name}" for name in record.copied]
    _git(repository, record.folder, "add", "-A", "--", ".", *excluded)
    _git(repository, record.folder, "commit", "-q", "-m", message)


def _git(repository: Repository, folder: str, *words: str) -> None:
    dropped = ("GIT_", "DRAGOMAN_")
    env = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    try:
        done = subprocess.run(
            [repository.program.path, *words],
            cwd=folder,
            env={**env, "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise WorktreeError(f"git {words[0]} did not end within {PATIENCE:g} s", "git_failed") from error
    if done.returncode:
        said = done.stdout[-TOLD:].decode(errors="replace").strip()
        raise WorktreeError(
            f"git {words[0]} failed, or a hook refused it: {said}",
            "conflict" if "CONFLICT" in said else "refused",
        )
