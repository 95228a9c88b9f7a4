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
from dragoman.worktrees.git import Project, View
from dragoman.worktrees.making import admin_folder
from dragoman.worktrees.records import Record
from dragoman.worktrees.repository import Repository

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
    """Compare the files of a linked worktree with its commit; as data, with an index of ours."""
    admin, commit, view = linked(repository, record), present_commit(repository, record), repository.view()
    with tempfile.TemporaryDirectory(dir=view.directory) as folder:
        index = Path(folder, "index")
        if (admin / "index").is_file():
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


def linked(repository: Repository, record: Record) -> Path:
    """The folder in the repository that stands for a linked worktree."""
    admin = admin_folder(repository, record)
    if admin is None:
        raise WorktreeError(f"{record.folder} is not linked to {record.repository} any more", "not_linked")
    return admin


def present_commit(repository: Repository, record: Record) -> str:
    """The commit that a linked worktree has checked out."""
    own = Project(repository.program, linked(repository, record))
    found = own.run("rev-parse", "--verify", "-q", "HEAD^{commit}", accepted=(0, 1, 128))
    return found.decode().strip() or repository.tip(f"refs/heads/{record.branch}") or record.base


def is_ancestor(view: View, older: str, newer: str) -> bool:
    return view.run("rev-list", "--count", "--max-count=1", older, f"^{newer}").strip() == b"0"


def describe(repository: Repository | None, record: Record, trouble: str = "") -> Worktree:
    """A worktree as it is; without a repository it cannot be told what it holds, and `trouble` says why."""
    present = Path(record.folder).is_dir()
    state: State = "unfinished" if record.stage != "ready" else "ready" if present else "missing"
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
        bytes=disk_use(record.folder),
    )
    if repository is None:
        return structs.replace(found, unknown=trouble)
    uncommitted, own = 0, frozenset[str]()
    if present and (record.stage == "ready" or _was_filled(repository, record)):
        if record.form == "clone":
            clone = repository.clone(record).state()
            uncommitted, own = len(clone.changed), clone.own
        else:
            with look(repository, record) as content:
                uncommitted, own = len(content.changed), frozenset({content.commit})
    return structs.replace(found, uncommitted=uncommitted, unmerged=_unmerged(repository, record, own))


def _was_filled(repository: Repository, record: Record) -> bool:
    """Whether an unfinished worktree got its files: before that there is nothing to compare."""
    if record.form == "clone":
        return Path(record.folder, ".git", "index").is_file()
    admin = admin_folder(repository, record)
    return admin is not None and (admin / "index").is_file()


def _unmerged(repository: Repository, record: Record, own: frozenset[str]) -> int:
    """Commits of the worktree that neither the branch it began on nor the checked out one has."""
    view = repository.view()
    given = "".join(f"{commit}\n" for commit in sorted(own)).encode()
    rows = view.run("cat-file", "--batch-check=%(objectname) %(objecttype)", given=given).split(b"\n")
    known = {row.split()[0].decode() for row in rows if row.endswith(b" commit")}
    tips = sorted((known | {repository.tip(f"refs/heads/{record.branch}")}) - {""})
    into = repository.tip(f"refs/heads/{record.into}") if record.into else ""
    bases = {repository.tip("HEAD"), into} - {""} or {record.base}
    missing = len(own - known)  # only a clone can have commits that its repository lacks
    if not tips:
        return missing
    given = "".join(f"{tip}\n" for tip in (*tips, *(f"^{base}" for base in sorted(bases)))).encode()
    return missing + int(view.run("rev-list", "--count", "--stdin", given=given))


def disk_use(folder: str) -> int:
    total = 0
    for place, folders, files in os.walk(folder, onerror=lambda error: None):
        for name in (*folders, *files):
            try:
                total += os.lstat(Path(place, name)).st_blocks * 512
            except OSError:
                continue
    return total
