"""Fills the worktree of a fork: with the files of another worktree as they are, or as a checkpoint recorded them.

The fork's branch begins at a commit of the other worktree, whose files are checked out as for any new worktree. Then the
files that differ from that commit are written over them as data, byte for byte. The index stays that of the commit, so
that what was not committed there is not committed here either.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from dragoman.checkpoints.git import Git
from dragoman.checkpoints.reading import TooLarge, Tree
from dragoman.checkpoints.writing import remove, write
from dragoman.gateway.ports.worktrees import RecordedTree
from dragoman.worktrees.git import View
from dragoman.worktrees.records import Record
from dragoman.worktrees.repository import Repository
from dragoman.worktrees.status import look, present_commit

LARGEST = 256 << 20
"""Bytes of one file that a fork takes over if it is not committed: it is held in memory once."""
SUBMODULE = b"160000"


def starting_commit(repository: Repository, source: Record, recorded: RecordedTree | None) -> str:
    """The commit for the fork's branch: the present one, or the last that was there when the files were recorded."""
    if source.form == "linked":
        commit = present_commit(repository, source)
    else:
        clone = repository.clone(source)
        commit = clone.state().commit
        clone.send(repository.view(), [commit])
    if recorded is None:
        return commit
    words = ("--first-parent", "--max-count=1", f"--before={recorded.time}", commit, f"^{source.base}")
    found = repository.view().run("rev-list", *words).decode().strip()
    return found or source.base


@contextmanager
def changed_files(repository: Repository, source: Record) -> Iterator[Callable[[], list[bytes]]]:
    """Find the files of another worktree that differ from its commit, while the block makes the fork's.

    The git of a clone runs in its box, for which this thread is needed.
    """
    if source.form == "clone":
        found = repository.clone(source).state().changed
        yield lambda: found
        return
    repository.view()  # its folder is written before both need it
    with ThreadPoolExecutor(1) as threads:
        yield threads.submit(_differing, repository, source).result


def _differing(repository: Repository, source: Record) -> list[bytes]:
    with look(repository, source) as content:
        return content.changed


def copy_present(source: Record, changed: list[bytes], folder: str) -> list[str]:
    """Write these files of another worktree, and those of `worktrees.copy`; returns what there is to tell."""
    changed = [*changed, *(os.fsencode(name) for name in source.copied)]
    told, written = [], []
    with Tree(source.folder) as old, Tree(folder) as new:
        for path in changed:
            if path.endswith(b"/"):
                told.append(f"{_shown(path)} was not copied to the fork: it is a repository of its own.")
            elif not _is_file(old, path):
                _remove(new, path)  # all removals first: a file may stand where a folder is now
            else:
                written.append(path)
        for path in written:
            try:
                found = old.read(path, LARGEST)
                if found is not None:
                    write(new, path, found)
            except TooLarge as error:
                told.append(f"{_shown(path)} was not copied to the fork: it has {error.size >> 20} MB.")
            except OSError as error:
                told.append(f"{_shown(path)} was not copied to the fork: {error.strerror}.")
    return told


def _is_file(tree: Tree, path: bytes) -> bool:
    found = tree.present(path)
    return found is not None and (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode))


def write_recorded(view: View, commit: str, recorded: RecordedTree, index: Path, folder: str) -> None:
    """Bring the files of a commit to those of a checkpoint; `index` is that of the commit.

    Tracked files that are ignored stay, because checkpoints do not hold them.
    """
    store = Git(view.program, Path(recorded.store))
    old = _entries(view.run("ls-tree", "-r", "-z", commit))
    new = _entries(store.run("ls-tree", "-r", "-z", recorded.tree))
    ignored = view.run("ls-files", "-z", "-c", "-i", "--exclude-standard", index=index, tree=folder)
    stay = set(ignored.split(b"\0")) | {path for path in old if _shown(path) in recorded.left_out}
    with Tree(folder) as tree:
        for path in old.keys() - new.keys() - stay:
            _remove(tree, path)
    changed = [path for path, entry in new.items() if old.get(path) != entry]
    with tempfile.TemporaryDirectory(dir=view.directory) as scratch:
        place = Path(scratch, "index")
        store.run("read-tree", recorded.tree, index=place)
        words = ("checkout-index", "-f", "-q", "-z", "--stdin")
        store.run(*words, given=b"".join(path + b"\0" for path in changed), index=place, tree=folder)


def _entries(listed: bytes) -> dict[bytes, bytes]:
    """Mode and object of each file, by its path."""
    rows: Iterable[tuple[bytes, bytes, bytes]] = (row.partition(b"\t") for row in listed.split(b"\0") if row)
    return {path: head for head, _, path in rows if not head.startswith(SUBMODULE)}


def _remove(tree: Tree, path: bytes) -> None:
    with suppress(FileNotFoundError, NotADirectoryError):
        remove(tree, path)


def _shown(path: bytes) -> str:
    return path.decode(errors="backslashreplace")
