"""Which files a commit has: those that the session changed, or those that are named."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from dragoman.checkpoints.names import shown
from dragoman.commits.checkout import Checkout
from dragoman.commits.scratch import Scratch
from dragoman.commits.snapshot import GITLINK, Limits, Snapshot, changed_names
from dragoman.gateway.ports.checkpoints import FileState, SharedChanges, Touched
from dragoman.gateway.ports.commits import CommitError, CommitPlan, CommitWish

MERGING = {"MERGE_HEAD": "merge", "CHERRY_PICK_HEAD": "cherry-pick", "REVERT_HEAD": "revert"}


def make_plan(
    checkout: Checkout, wish: CommitWish, touched: Touched | None, limits: Limits, own: str | None
) -> CommitPlan:
    check_branch(checkout)
    names = _uncommitted(checkout, limits, own)
    if touched is not None and not wish.paths:
        touched = replace(touched, shared=_shared(checkout, touched, names, limits))
    names, left = choose(names, checkout.root, wish, touched)
    return CommitPlan(
        root=checkout.root,
        branch=checkout.branch,
        head=checkout.head(),
        names=tuple(names),
        files=tuple(shown(name) for name in names),
        left=tuple(shown(name) for name in left),
    )


def choose(
    names: list[bytes], root: str, wish: CommitWish, touched: Touched | None
) -> tuple[list[bytes], list[bytes]]:
    """Of the paths that are not committed those that the wish means, and those that are left because of others."""
    if touched is not None and touched.folder != root:
        raise CommitError(
            f"The checkpoints of the session are of {touched.folder}, not of {root}", "other_folder"
        )
    left: list[bytes] = []
    if wish.paths:
        names = _named(names, wish.paths)
    elif touched is not None:
        names = [name for name in names if name in touched.paths]
        shared = [name for name in names if name in touched.shared]
        if shared and wish.shared == "refuse":
            raise SharedChanges([shown(name) for name in shared], "commit")
        if wish.shared == "leave":
            left, names = shared, [name for name in names if name not in touched.shared]
    return names, left


def check_branch(checkout: Checkout) -> None:
    """Raise if there is no branch to commit to, or something else is under way."""
    if checkout.busy:
        what = MERGING.get(checkout.busy, "rebase")
        raise CommitError(
            f"A {what} is under way in {checkout.root}: finish it with `git {what} --continue`, or abort it",
            "busy",
        )
    if not checkout.branch:
        raise CommitError(
            f"{checkout.root} has no branch checked out (its head is detached): `git switch -c NAME` makes one",
            "detached_head",
        )


def _uncommitted(checkout: Checkout, limits: Limits, own: str | None) -> list[bytes]:
    """All paths that differ from the last commit, staged or not; without repositories inside of the project."""
    with checkout.scratch() as git:
        index = Path(git.directory, "index")
        checkout.copy_index(git, index)
        names = set(changed_names(git, index, limits.files, own))
        if index.exists():
            staged = git.run(
                "diff-index", "--cached", "--no-renames", "-z", "--name-only", checkout.base, index=index
            )
            names |= {name for name in staged.split(b"\0") if name}
    return sorted(name for name in names if not name.endswith(b"/"))


def _shared(checkout: Checkout, touched: Touched, names: Iterable[bytes], limits: Limits) -> set[bytes]:
    """The files with changes since the last commit that are not the session's alone.

    A file is the session's alone if it was as committed at a checkpoint, and only the session changed it since.
    """
    wanted = {name for name in names if name in touched.states}
    found = {name for name in touched.shared if name not in touched.states}
    if not wanted:
        return found
    with checkout.scratch() as git:
        index = Path(git.directory, "index")
        checkout.copy_index(git, index)
        snapshot = Snapshot(checkout, git, index, limits)
        committed = _committed(git, checkout.base, wanted)
        attributes = snapshot.attributes_of(sorted(wanted))
        with git.started("cat-file", "--batch") as reading:
            for name in wanted:
                state, states = committed.get(name), touched.states[name]
                if not checkout.settings.true("core.filemode", default=True):
                    # The mode in the index holds, so that the one of the file says nothing.
                    states = {known and (state[0] if state else known[0], known[1]) for known in states}
                if state in states:
                    continue
                if state is None or state[0] == GITLINK.decode():
                    found.add(name)
                    continue
                data = reading.blob(state[1])
                forms = [data]
                crlf = data.replace(b"\n", b"\r\n")
                if b"\r\n" not in data and snapshot.converts(attributes.get(name, {}), crlf):
                    forms.append(crlf)  # what git writes out, and a checkpoint holds
                if states.isdisjoint((state[0], _sha1(form)) for form in forms):
                    found.add(name)
    return found


def _committed(git: Scratch, base: str, wanted: set[bytes]) -> dict[bytes, FileState]:
    """Modes and objects of these paths in a commit."""
    rows = (row.partition(b"\t") for row in git.run("ls-tree", "-r", "-z", base).split(b"\0"))
    return {path: _state(head.decode()) for head, _, path in rows if path in wanted}


def _state(head: str) -> FileState:
    mode, _, object_id = head.split()
    return mode, object_id


def _sha1(data: bytes) -> str:
    """The object of a file in a repository of checkpoints."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _named(names: Iterable[bytes], wanted: Iterable[str]) -> list[bytes]:
    """The paths that were asked for, or that are in a folder that was."""
    every = {name: shown(name) for name in names}
    found: set[bytes] = set()
    for one in wanted:
        plain = one.removeprefix("./").rstrip("/")
        matching = {
            name for name, text in every.items() if plain in (text, ".") or text.startswith(plain + "/")
        }
        if not matching:
            raise CommitError(f"{one} has nothing that is not committed", "no_change", [one])
        found |= matching
    return sorted(found)
