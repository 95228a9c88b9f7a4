"""Merges and rebases a worktree's branch with git's own merge, in memory first: a conflict changes nothing at all.

    merge-tree (view) ─► commit-tree ─► read-tree -m -u (files, refuses to overwrite) ─► update-ref (compares)

If the ref moved in between, the files go back.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from dragoman.gateway.ports.checkpoints import CheckpointError
from dragoman.gateway.ports.worktrees import Merged, WorktreeError
from dragoman.worktrees.git import View, head_branch
from dragoman.worktrees.records import Record
from dragoman.worktrees.repository import Repository
from dragoman.worktrees.status import Content, is_ancestor, linked, look

MOST_COMMITS = 1000
LISTED = 20
DRAFT = "index.dragoman"


def merge(repository: Repository, record: Record, message: str | None, into: str | None) -> Merged:
    """Merge the worktree's branch into the one that is checked out in the repository."""
    target = target_of(repository, record, into)
    tip = commit_all(repository, record, message)
    repository.check_submodules(tip, f"merge {record.branch} with git")
    view, head = repository.view(), repository.head()
    if is_ancestor(view, tip, head):
        return Merged(record.name, head, target)
    if is_ancestor(view, head, tip):
        new = tip
    else:
        tree = _merged_tree(view, head, tip, record, target)
        words = f"Merge branch '{record.branch}' into {target}"
        new = view.run("commit-tree", tree, "-p", head, "-p", tip, "-m", words).decode().strip()
    files = changed_files(view, head, new)
    index = repository.own / "index"
    _move(view, head, new, index, repository.root)
    try:
        repository.set_ref("HEAD", new, head, f"merge {record.branch}")
    except CheckpointError as error:
        _move(view, new, head, index, repository.root)
        raise WorktreeError(
            f"{target} has moved meanwhile, so nothing was merged: try again", "moved"
        ) from error
    return Merged(record.name, new, target, files)


def target_of(repository: Repository, record: Record, into: str | None) -> str:
    repository.check_calm()
    target = repository.branch
    if not target:
        raise WorktreeError(
            f"{repository.root} has no branch checked out (its head is detached): check out the branch to merge into",
            "detached_head",
        )
    wanted = into or record.into or target
    if target != wanted:
        raise WorktreeError(
            f"{repository.root} has {target} checked out, not {wanted}: check {wanted} out there, or merge "
            f"into {target} with --into {target}",
            "other_branch",
        )
    return target


def commit_all(repository: Repository, record: Record, message: str | None) -> str:
    """The tip of the worktree's branch, in the repository; what is not committed is committed if there is a message."""
    if record.form == "linked":
        return _commit_linked(repository, record, message)
    new, ref = _commit_clone(repository, record, message), f"refs/heads/{record.branch}"
    old = repository.tip(ref)
    if new != old:
        repository.set_ref(ref, new, old, "worktree")
    return new


def _commit_clone(repository: Repository, record: Record, message: str | None) -> str:
    clone = repository.clone(record)
    state = clone.state()
    _check_branch(state.branch, record)
    check_changes(state.changed, record, message)
    if state.changed:
        clone.commit(message or "", repository.author)
        state = clone.state()
    clone.send(repository.view(), [state.commit])
    return state.commit


def _commit_linked(repository: Repository, record: Record, message: str | None) -> str:
    admin = linked(repository, record)
    _check_branch(head_branch(admin), record)
    with look(repository, record) as content:
        check_changes(content.changed, record, message)
        if not content.changed:
            return content.commit
        new = _commit(content, record, message or "")
        # The branch moves before the index: in between, a crash leaves changes that look staged, and loses nothing.
        repository.set_ref(f"refs/heads/{record.branch}", new, content.commit, "worktree")
        _replace_index(content.index, admin / "index")
        return new


def _check_branch(branch: str, record: Record) -> None:
    if branch != record.branch:
        raise WorktreeError(
            f"{record.folder} has {branch or 'no branch'} checked out instead of {record.branch}: merge it by hand, or "
            f"check {record.branch} out there",
            "other_branch",
        )


def check_changes(changed: list[bytes], record: Record, message: str | None) -> None:
    if changed and not message:
        names = [path.decode(errors="backslashreplace") for path in changed]
        raise WorktreeError(
            f"{record.name} has files that are not committed ({_few(names)}): commit them there, or give "
            "a message (--message) to commit them now",
            "uncommitted",
            names,
        )
    nested = [path for path in changed if path.endswith(b"/")]
    if nested:
        raise WorktreeError(
            f"{nested[0].decode(errors='backslashreplace')} in {record.folder} is a repository of its own, which cannot "
            "be committed: move it away first",
            "nested_repository",
        )


def _commit(content: Content, record: Record, message: str) -> str:
    content.view.run(
        *("update-index", "-z", "--add", "--remove", "--replace", "--stdin"),  # `add` runs git in submodules
        given=b"\0".join(content.changed),
        index=content.index,
        tree=record.folder,
    )
    tree = content.view.run("write-tree", index=content.index).decode().strip()
    return (
        content.view.run("commit-tree", tree, "-p", content.commit, given=message.encode()).decode().strip()
    )


def _replace_index(made: Path, index: Path) -> None:
    """Put our index in place of a worktree's, as git does: under its lock file."""
    release_index(index)
    draft, lock = index.with_name(DRAFT), index.with_name("index.lock")
    shutil.copyfile(made, draft)
    try:
        os.link(draft, lock)
    except FileExistsError as error:
        draft.unlink()
        raise WorktreeError(f"git is at work in the worktree ({lock} exists): try again", "busy") from error
    lock.replace(index)
    draft.unlink()


def release_index(index: Path) -> None:
    """Remove the lock file of a process of ours that was killed: it is the same file as our draft."""
    draft, lock = index.with_name(DRAFT), index.with_name("index.lock")
    try:
        if lock.samefile(draft):
            lock.unlink()
    except FileNotFoundError:
        pass
    draft.unlink(missing_ok=True)


def rebase(repository: Repository, record: Record) -> Merged:
    """Move the worktree's commits onto the branch that it began on."""
    if record.form == "clone":
        raise WorktreeError(
            f"{record.name} belongs to a boxed session, whose folder is not written from outside: merge it instead",
            "boxed",
        )
    onto = record.into or repository.branch
    base = repository.tip(f"refs/heads/{onto}") if onto else ""
    if not base:
        raise WorktreeError(
            f"The branch {onto or 'that it began on'} does not exist in {repository.root}", "no_branch"
        )
    tip, view = commit_all(repository, record, None), repository.view()
    repository.check_submodules(tip, f"rebase {record.branch} with git")
    if is_ancestor(view, base, tip):
        return Merged(record.name, tip, onto)
    new = base
    rows = (
        view.run("rev-list", "--reverse", "--topo-order", "--parents", tip, f"^{base}").decode().splitlines()
    )
    if len(rows) > MOST_COMMITS or any(len(row.split()) != 2 for row in rows):
        raise WorktreeError(
            f"{record.branch} has merges, or more than {MOST_COMMITS} commits, of its own: merge it instead",
            "not_linear",
        )
    for row in rows:
        commit, parent = row.split()
        new = _picked(view, commit, parent, new, record, onto)
    admin = linked(repository, record)
    _move(view, tip, new, admin / "index", record.folder)
    try:
        repository.set_ref(f"refs/heads/{record.branch}", new, tip, f"rebase onto {onto}")
    except CheckpointError as error:
        _move(view, new, tip, admin / "index", record.folder)
        raise WorktreeError(
            f"{record.branch} has moved meanwhile, so nothing was rebased: try again", "moved"
        ) from error
    return Merged(record.name, new, onto, changed_files(view, base, new))


def _picked(view: View, commit: str, parent: str, onto: str, record: Record, branch: str) -> str:
    """One commit on another base; a stand-in for it, a child of the commit's parent, makes the merge three-way."""
    tree = view.run("rev-parse", f"{onto}^{{tree}}").decode().strip()
    stand_in = view.run("commit-tree", tree, "-p", parent, "-m", "base").decode().strip()
    picked = _merged_tree(view, stand_in, commit, record, branch)
    if picked == tree:
        return onto  # the base has this change already
    text = view.run("cat-file", "commit", commit)
    head, _, message = text.partition(b"\n\n")
    kept = [line for line in head.split(b"\n") if line.startswith((b"author ", b"committer ", b"encoding "))]
    rows = [b"tree " + picked.encode(), b"parent " + onto.encode(), *kept]
    made = b"\n".join(rows) + b"\n\n" + message
    return view.run("hash-object", "-t", "commit", "-w", "--stdin", given=made).decode().strip()


def _merged_tree(view: View, ours: str, theirs: str, record: Record, target: str) -> str:
    with view.started(
        "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs
    ) as running:
        assert running.process.stdout is not None
        printed = running.process.stdout.read()
    running.check((0, 1))
    tree, *names = [part for part in printed.split(b"\0") if part]
    if running.process.returncode:
        paths = sorted({name.decode(errors="backslashreplace") for name in names})
        raise WorktreeError(
            f"{record.branch} and {target} changed the same lines of {_few(paths)}: nothing was changed. Merge {target} "
            f"into it in {record.folder}, or let its agent do it, then try again",
            "conflict",
            paths,
        )
    return tree.decode().strip()


def _move(view: View, old: str, new: str, index: Path, tree: str) -> None:
    """Bring files and index from one commit to another; raises, and changes nothing, rather than overwrite."""
    view.run("update-index", "-q", "--refresh", index=index, tree=tree, accepted=(0, 1))
    try:
        view.run("read-tree", "-m", "-u", old, new, index=index, tree=tree)
    except CheckpointError as error:
        raise WorktreeError(
            f"Files in {tree} that are not committed are in the way: {error}. Nothing was changed",
            "in_the_way",
        ) from error


def changed_files(view: View, old: str, new: str) -> list[str]:
    names = view.run("diff-tree", "-r", "-z", "--name-only", old, new).split(b"\0")
    return [name.decode(errors="backslashreplace") for name in names if name]


def _few(names: list[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more
