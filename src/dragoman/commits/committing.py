"""Makes a commit of some files on the branch of a work tree; the index stays as it was for all other files.

    index.lock ─► store files ─► tree of HEAD with them ─► commit-tree ─► update-ref HEAD (compares) ─► index

The lock is git's own, so that a git of the user and this one do not meet. If the branch moved, nothing is changed.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dragoman.checkpoints import difference
from dragoman.checkpoints.names import shown
from dragoman.commits.checkout import Checkout
from dragoman.commits.scratch import Scratch
from dragoman.commits.selection import check_branch
from dragoman.commits.snapshot import Limits, Snapshot, Stored, put_entries
from dragoman.gateway.ports.checkpoints import CheckpointError
from dragoman.gateway.ports.commits import CommitError, CommitPlan, Committed

LARGEST = 100 << 20
"""Bytes of one file: it is held in memory."""
NAMED = 5


def commit(checkout: Checkout, plan: CommitPlan, message: str, limits: Limits) -> Committed:
    check_branch(checkout)
    text = clean_message(message)
    if not all(checkout.settings.author):
        raise CommitError(
            "git does not know who you are: `git config --global user.name` and `user.email` say it",
            "no_author",
        )
    larger = Limits(limits.files, LARGEST, max(limits.bytes, LARGEST))
    with _locked(checkout) as lock, checkout.scratch(keep=True) as git:
        index, made = Path(git.directory, "index"), Path(git.directory, "commit")
        checkout.copy_index(git, index)
        staged = _staged(git, index, checkout.base) if index.exists() else {}
        stored = Snapshot(checkout, git, index, larger).store(plan.names)
        _check(stored, staged)
        git.run("read-tree", checkout.base, index=made)
        put_entries(git, made, stored)
        tree = git.run("write-tree", "--missing-ok", index=made).decode().strip()
        files = sorted(difference.paths(git, checkout.base, tree))
        if not files:
            raise nothing_to_commit(checkout.root)
        parents = ["-p", plan.head] if plan.head else []
        new = git.run("commit-tree", tree, *parents, given=text.encode()).decode().strip()
        began = time.time_ns()
        git.run("update-index", "-q", "--refresh", index=index, accepted=(0, 1))
        content = index.read_bytes()
        try:
            checkout.move(new, plan.head, text.partition("\n")[0])
        except CheckpointError as error:
            raise CommitError(
                f"{plan.branch} could not be moved to the new commit, so nothing was committed: {error}",
                "moved",
            ) from error
        _install(checkout, lock, content, began)
    return Committed(new, plan.branch, [shown(path) for path in files], list(plan.left))


def nothing_to_commit(root: str) -> CommitError:
    return CommitError(f"There is nothing to commit in {root}", "nothing_to_commit")


def clean_message(message: str) -> str:
    """A message without spaces at the ends of lines, and without empty lines around it."""
    lines = [line.rstrip() for line in message.replace("\r\n", "\n").split("\n")]
    text = "\n".join(lines).strip("\n")
    if not text.strip():
        raise CommitError("The message of a commit must not be empty", "no_message")
    if "\0" in text or any(0xD800 <= ord(sign) < 0xE000 for sign in text):
        raise CommitError("The message of a commit must be text, without the character NUL", "bad_message")
    return text + "\n"


def _staged(git: Scratch, index: Path, base: str) -> dict[bytes, tuple[bytes, bytes] | None]:
    """What is staged: mode and object by path, None for a removed one."""
    printed = git.run(
        "diff-index", "--cached", "--no-renames", "--raw", "--full-index", "-z", base, index=index
    )
    fields = printed.split(b"\0")
    found: dict[bytes, tuple[bytes, bytes] | None] = {}
    for head, path in zip(fields[::2], fields[1::2], strict=False):
        _, mode, _, object_id, _ = head.split()
        found[path] = None if mode == b"000000" else (mode, object_id)
    return found


def _check(stored: Stored, staged: dict[bytes, tuple[bytes, bytes] | None]) -> None:
    """Raise if a file cannot be committed, or is staged in another form than it has now."""
    for left in stored.left_out:
        why = {
            "filter": "a git filter would have to run (such as Git LFS): allow it with --hooks",
            "too_large": f"it has more than {LARGEST >> 20} MB: commit it with git, or leave it out",
            "repository": "it is a repository of its own",
        }.get(left.reason, "it cannot be read")
        raise CommitError(f"{left.path} was not committed: {why}", left.reason, [left.path])
    now: dict[bytes, tuple[bytes, bytes] | None] = {
        name: (mode, object_id) for mode, object_id, name in stored.written
    }
    now |= dict.fromkeys(stored.removed)
    other = sorted(shown(path) for path in now if path in staged and staged[path] != now[path])
    if other:
        more = f" and {len(other) - NAMED} more" if len(other) > NAMED else ""
        raise CommitError(
            f"{', '.join(other[:NAMED])}{more}: what is staged is not what the file has now, so nothing was committed. "
            "`git add` stages the file as it is, `git restore --staged` takes it out",
            "staged",
            other,
        )


@contextmanager
def _locked(checkout: Checkout) -> Iterator[Path]:
    """Hold the lock of the index."""
    lock = checkout.own / "index.lock"
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o644))
    except FileExistsError as error:
        raise CommitError(
            f"Another git is at work in {checkout.root}: try again. If none is, remove {lock}", "busy"
        ) from error
    except OSError as error:
        raise CommitError(f"{checkout.own} cannot be written: {error.strerror}", "io_failed") from error
    try:
        yield lock
    finally:
        with suppress(FileNotFoundError):
            lock.unlink()


def _install(checkout: Checkout, lock: Path, content: bytes, began: int) -> None:
    """Put the new index in the place of the old one."""
    index = checkout.own / "index"
    with suppress(OSError):
        lock.chmod(stat.S_IMODE(index.stat().st_mode))
    lock.write_bytes(content)
    os.utime(lock, ns=(began, began))  # what changed since git looked must be looked at again
    lock.replace(index)
