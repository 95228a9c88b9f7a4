"""What a worktree holds that nothing else does: files that are not committed, commits that are not merged."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from dragoman.gateway.ports.worktrees import State, Worktree, WorktreeError
from dragoman.worktrees.git import Project, View, head_branch
from dragoman.worktrees.making import admin_folder
from dragoman.worktrees.records import Record
from dragoman.worktrees.repository import Repository, clone_head

MOST_FILES = 200_000


@dataclass(frozen=True)
class Content:
    """A worktree's files, compared with its last commit."""

    view: View
    index: Path
    """A copy that may be written to."""
    commit: str
    changed: list[bytes]
    """Paths that differ from the commit or are new; one that ends with `/` is a repository of its own."""


@contextmanager
def look(repository: Repository, record: Record) -> Iterator[Content]:
    """Compare the files of a worktree with its commit; as data, with an index of ours."""
    commit = present_commit(repository, record)
    objects = Path(record.folder, ".git", "objects") if record.form == "clone" else None
    view = repository.view(objects)
    with tempfile.TemporaryDirectory(dir=view.directory) as folder:
        index = Path(folder, "index")
        admin = admin_folder(repository, record) if record.form == "linked" else None
        if admin is not None and (admin / "index").is_file():
            shutil.copyfile(admin / "index", index)
        else:
            view.run("read-tree", commit, index=index)
        view.run("update-index", "-q", "--refresh", index=index, tree=record.folder, accepted=(0, 1))
        exclude = repository.common / "info" / "exclude"
        more = [f"--exclude-from={exclude}"] if exclude.is_file() else []
        changed: list[bytes] = []
        # git would run `git status` in a submodule, with the configuration that the agent wrote there.
        for words in (
            ["diff-index", "-z", "--name-only", "--ignore-submodules=dirty", commit],
            ["ls-files", "-z", "-o", "--exclude-standard", *more],
        ):
            with view.started(*words, index=index, tree=record.folder) as running:
                changed += running.names(MOST_FILES)
            running.check((0, -9))
        copied = {os.fsencode(name) for name in record.copied}
        paths = sorted({path for path in changed if path not in copied})
        yield Content(view, index, commit, paths)


def present_commit(repository: Repository, record: Record) -> str:
    """The commit that the files of a worktree are compared with."""
    tip = repository.tip(f"refs/heads/{record.branch}")
    if record.form == "linked":
        admin = admin_folder(repository, record)
        if admin is None:
            raise WorktreeError(
                f"{record.folder} is not linked to {record.repository} any more", "not_linked"
            )
        own = Project(repository.program, admin)
        found = own.run("rev-parse", "--verify", "-q", "HEAD^{commit}", accepted=(0, 1, 128))
        return found.decode().strip() or tip or record.base
    head = clone_head(record.folder)
    if not head:
        return tip or record.base
    view = repository.view(Path(record.folder, ".git", "objects"))
    return tip if tip and is_ancestor(view, head, tip) else head


def is_ancestor(view: View, older: str, newer: str) -> bool:
    return view.run("rev-list", "--count", "--max-count=1", older, f"^{newer}").strip() == b"0"


def describe(repository: Repository | None, record: Record) -> Worktree:
    """A worktree as it is; what cannot be told counts as one that would be lost."""
    present = Path(record.folder).is_dir()
    state: State = "missing" if not present else "ready" if record.ready else "unfinished"
    found = Worktree(
        name=record.name,
        branch=record.branch,
        repository=record.repository,
        folder=record.folder,
        form=record.form,
        state=state,
        session=record.session,
        into=record.into,
        kept=record.kept,
        uncommitted=int(present),
        bytes=disk_use(record.folder),
    )
    if repository is None:
        return found
    uncommitted = 0
    if present and (record.ready or _was_filled(repository, record)):
        with look(repository, record) as content:
            uncommitted, commit = len(content.changed), content.commit
            unmerged = _unmerged(repository, record, content.view, commit)
    else:
        unmerged = _unmerged(repository, record, repository.view(), "")
    return structs.replace(found, uncommitted=uncommitted, unmerged=unmerged)


def _was_filled(repository: Repository, record: Record) -> bool:
    """Whether an unfinished worktree got its files: before that there is nothing to compare."""
    if record.form == "clone":
        return Path(record.folder, ".git", "index").is_file() and bool(clone_head(record.folder))
    admin = admin_folder(repository, record)
    return admin is not None and (admin / "index").is_file()


def _unmerged(repository: Repository, record: Record, view: View, commit: str) -> int:
    """Commits of the worktree that neither the branch it began on nor the checked out one has."""
    tips = {commit, repository.tip(f"refs/heads/{record.branch}")} - {""}
    bases = {repository.tip("HEAD"), repository.tip(f"refs/heads/{record.into}") if record.into else ""} - {
        ""
    }
    if not tips:
        return 0
    bases = bases or {record.base}
    return int(view.run("rev-list", "--count", *sorted(tips), *(f"^{base}" for base in sorted(bases))))


def checked_out(repository: Repository, record: Record) -> str:
    """The branch that a worktree has checked out now."""
    if record.form == "clone":
        return head_branch(Path(record.folder, ".git"))
    admin = admin_folder(repository, record)
    return head_branch(admin) if admin is not None else ""


def disk_use(folder: str) -> int:
    total = 0
    for place, folders, files in os.walk(folder, onerror=lambda error: None):
        for name in (*folders, *files):
            try:
                total += os.lstat(Path(place, name)).st_blocks * 512
            except OSError:
                continue
    return total
