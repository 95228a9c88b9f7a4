"""What differs between the last commit of a project and its files, as `git diff HEAD` and untracked files show it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dragoman.checkpoints import difference
from dragoman.commits.checkout import Checkout
from dragoman.commits.scratch import Scratch
from dragoman.commits.snapshot import Limits, Snapshot, Stored, changed_names
from dragoman.gateway.ports.commits import Uncommitted


@dataclass(frozen=True)
class Present:
    """The files of a work tree, stored for a moment."""

    git: Scratch
    base: str
    index: Path
    stored: Stored


@contextmanager
def present(checkout: Checkout, limits: Limits, own: str | None) -> Iterator[Present]:
    """The work tree as an index of git; `own` is the pattern of our state folder, if it is in the project."""
    with checkout.scratch() as git:
        index = Path(git.directory, "index")
        checkout.copy_index(git, index)
        stored = Snapshot(checkout, git, index, limits).store(changed_names(git, index, limits.files, own))
        yield Present(git, checkout.base, index, stored)


def changes(checkout: Checkout, limits: Limits, own: str | None) -> Uncommitted:
    with present(checkout, limits, own) as now:
        files = difference.changes(now.git, now.base, now.index, set())
    unheld = {each.path for each in now.stored.left_out}
    return Uncommitted(
        folder=checkout.root,
        branch=checkout.branch,
        head=checkout.head(),
        files=[each for each in files if each.path not in unheld],
        left_out=now.stored.left_out,
        more_left_out=now.stored.more,
    )


def patch(checkout: Checkout, limits: Limits, own: str | None) -> bytes:
    with present(checkout, limits, own) as now:
        return difference.patch(now.git, now.base, now.index)
