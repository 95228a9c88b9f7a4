"""Undoes what happened between two checkpoints, on the project as it is now.

    A ──what is to be undone──► B ──later changes──► P, the present, recorded just before

A file that is in P as it was in B gets its content of A. One that changed since is merged (base B, ours P, theirs A); if
that conflicts, nothing at all is written. Files that a checkpoint left out are never touched. All is planned from
checkpoints, then every file is compared with P once more before the first is written.
"""

from __future__ import annotations

import hashlib
import stat
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dragoman.checkpoints import difference, writing
from dragoman.checkpoints.difference import Entry, Raw
from dragoman.checkpoints.git import Git
from dragoman.checkpoints.names import shown
from dragoman.checkpoints.reading import Content, TooLarge, Tree
from dragoman.gateway.ports.checkpoints import Checkpoint, CheckpointError

_FILES = ("100644", "100755")
LARGEST = 1 << 31


@dataclass(frozen=True, slots=True)
class Step:
    """What becomes of one file; None: it does not exist."""

    path: bytes
    present: Entry | None
    wanted: Entry | None
    data: bytes | None = None
    """Content that is in no checkpoint; None: the object of `wanted`."""


class Plan:
    def __init__(self, git: Git, since: Checkpoint, until: Checkpoint, present: Checkpoint) -> None:
        self._git = git
        self._since = since
        self._until = until
        self._present = present
        self._now = {one.path: one.new for one in difference.raw(git, until.tree, present.tree)}
        self._unheld = {each.path for point in (since, until, present) for each in point.left_out}
        self.steps: list[Step] = []
        self.kept: list[str] = []
        """Files that are not touched because a checkpoint does not hold them."""

    def undo(self, files: Iterable[Raw], hunk: int | None = None) -> None:
        """Plan to undo the changes of these files, or one hunk of one file; raises if one cannot be undone."""
        conflicts = []
        for one in files:
            if shown(one.path) in self._unheld or (one.old is None and self._since.more_left_out):
                self.kept.append(shown(one.path))
                continue
            step = self._step(one) if hunk is None else self._hunk_step(one, hunk)
            if step is None:
                conflicts.append(shown(one.path))
            elif step.present != step.wanted or step.data is not None:
                self.steps.append(step)
        if conflicts:
            raise CheckpointError(
                f"Later changes of {', '.join(conflicts[:5])} are in the way, so nothing was undone: undo these first, "
                "or edit by hand.",
                "conflict",
            )

    def _step(self, one: Raw) -> Step | None:
        present = self._now.get(one.path, one.new)
        if present in (one.new, one.old):
            return Step(one.path, present, one.old)
        if one.old is None or one.new is None or present is None:
            return None
        return self._merged(one.path, present, one.new, self._blob(one.old), one.old)

    def _hunk_step(self, one: Raw, number: int) -> Step | None:
        if one.old is None or one.new is None or {one.old.mode, one.new.mode} - set(_FILES):
            raise CheckpointError(f"{shown(one.path)} has no hunks: undo the whole file.", "no_hunk")
        section = self._git.run("diff", *difference.PLAIN, "--full-index", one.old.object, one.new.object)
        found = [hunk for hunk in difference.hunks_of(section) if hunk.number == number]
        if not found:
            raise CheckpointError(f"{shown(one.path)} has no hunk {number}.", "no_hunk")
        undone = difference.without_hunk(self._blob(one.new), found[0])
        present = self._now.get(one.path, one.new)
        if undone is None or present is None:
            return None
        if present == one.new:
            return Step(one.path, present, Entry(one.new.mode, _object_id(undone)), undone)
        return self._merged(one.path, present, one.new, undone, one.new)

    def _merged(self, path: bytes, present: Entry, base: Entry, theirs: bytes, wanted: Entry) -> Step | None:
        """The present content with the change undone; None if both changed the same lines."""
        if {present.mode, base.mode, wanted.mode} - set(_FILES):
            return None
        contents = (self._blob(present), self._blob(base), theirs)
        with tempfile.TemporaryDirectory(dir=self._git.directory) as folder:
            names = [str(Path(folder, name)) for name in ("present", "base", "wanted")]
            for name, content in zip(names, contents, strict=True):
                Path(name).write_bytes(content)
            try:
                merged = self._git.run("merge-file", "-p", "-q", *names)
            except CheckpointError:
                return None
        mode = wanted.mode if present.mode == base.mode else present.mode
        return Step(path, present, Entry(mode, _object_id(merged)), merged)

    def _blob(self, entry: Entry) -> bytes:
        return self._git.run("cat-file", "blob", entry.object)

    # -- carrying it out

    def carry_out(self, root: str) -> list[str]:
        """Write and remove the files; returns their paths."""
        gone = sorted((step.path for step in self.steps if step.wanted is None), reverse=True)
        with Tree(root) as tree, self._git.started("cat-file", "--batch") as reading:
            room = Room(gone)
            for step in self.steps:
                _check(tree, step, room)
            tree.forget()
            done: list[str] = []
            path = b""
            try:
                for path in gone:
                    writing.remove(tree, path)
                    done.append(shown(path))
                for path, wanted, data in self._wanted():
                    content = data if data is not None else reading.blob(wanted.object)
                    writing.write(tree, path, Content(wanted.mode.encode(), content))
                    done.append(shown(path))
            except OSError as error:
                raise PartlyDone(done, len(self.steps), path, error) from error
        return sorted(done)

    def _wanted(self) -> Iterator[tuple[bytes, Entry, bytes | None]]:
        for step in self.steps:
            if step.wanted is not None:
                yield step.path, step.wanted, step.data


class Room:
    """What is removed first, so that something else can take its place."""

    def __init__(self, removed: Iterable[bytes]) -> None:
        self._removed = frozenset(removed)
        self._folders: set[bytes] = set()
        for path in self._removed:
            while (path := path.rpartition(b"/")[0]) and path not in self._folders:
                self._folders.add(path)

    def has(self, tree: Tree, path: bytes) -> bool:
        """Whether a file can be made: nothing stands there or above it but folders, and what is removed first."""
        if tree.present(path) is not None and path not in self._folders:
            return False
        above = path.rpartition(b"/")[0]
        while above:
            standing = tree.present(above)
            if standing is not None and not stat.S_ISDIR(standing.st_mode):
                return above in self._removed
            above = above.rpartition(b"/")[0]
        return True


def _check(tree: Tree, step: Step, room: Room) -> None:
    """Raise if a file is not as it was recorded a moment ago, or if something unrecorded is in the way."""
    try:
        found = tree.read(step.path, LARGEST)
    except (TooLarge, OSError):
        raise _in_the_way(step.path) from None
    same = _same(found, step.present)
    if found is None and step.present is None:
        same = room.has(tree, step.path)
    if not same:
        raise _in_the_way(step.path)


class PartlyDone(CheckpointError):
    """The disk refused in the middle."""

    def __init__(self, done: list[str], planned: int, path: bytes, error: OSError) -> None:
        super().__init__(
            f"{shown(path)}: {error.strerror}. {len(done)} of {planned} files were restored; the undo of this brings "
            "them back.",
            "partly_restored",
        )
        self.done = done


def _in_the_way(path: bytes) -> CheckpointError:
    return CheckpointError(
        f"{shown(path)} is not as it was recorded a moment ago, or is something that no checkpoint holds, so nothing "
        "was restored: move it away, then try again.",
        "in_the_way",
    )


def _same(found: Content | None, entry: Entry | None) -> bool:
    if found is None or entry is None:
        return found is None and entry is None
    return found.mode.decode() == entry.mode and _object_id(found.data) == entry.object


def _object_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
