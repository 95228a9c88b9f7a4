"""Which files a commit has: those that the session changed, or those that are named."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dragoman.checkpoints.names import shown
from dragoman.commits.checkout import Checkout
from dragoman.commits.snapshot import Limits, changed_names
from dragoman.gateway.ports.checkpoints import SharedChanges, Touched
from dragoman.gateway.ports.commits import CommitError, CommitPlan, CommitWish

MERGING = {"MERGE_HEAD": "merge", "CHERRY_PICK_HEAD": "cherry-pick", "REVERT_HEAD": "revert"}


def make_plan(
    checkout: Checkout, wish: CommitWish, touched: Touched | None, limits: Limits, own: str | None
) -> CommitPlan:
    check_branch(checkout)
    names, left = choose(_uncommitted(checkout, limits, own), checkout.root, wish, touched)
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
