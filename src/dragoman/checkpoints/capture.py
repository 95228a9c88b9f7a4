"""Records a project: finds the changed files, reads them as data, and writes them with one `git fast-import`.

    ls-files -o ┐
    ls-files -m ┴► changed names ─► reading.py ─► fast-import ─► commit on refs/sessions/ID ─► update-index
                    bounded          no symlinks    one pack       the checkpoint is there       for the next time

git never reads a file that it stores: it is given the bytes. It compares files with its index, as data.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from dragoman.checkpoints.git import Running
from dragoman.checkpoints.history import message_of
from dragoman.checkpoints.names import quoted, shown
from dragoman.checkpoints.objects.commits import AUTHOR
from dragoman.checkpoints.reading import Content, TooLarge, Tree
from dragoman.checkpoints.repository import Repository, WorkIndex
from dragoman.checkpoints.watching.project_watch import ProjectWatch
from dragoman.config.sections.checkpoints import CheckpointsConfig
from dragoman.gateway.ports.checkpoints import Checkpoint, CheckpointError, LeftOut, Mark

LISTED_AS_LEFT_OUT = 200
"""Paths that a checkpoint names as left out; the others are counted."""
SPARE_BYTES = 64 << 20
"""Bytes that a checkpoint leaves free on the disk of the state folder."""
NO_OBJECT = b"0" * 40
CLOCK_TICK = 20_000_000
"""Nanoseconds by which the time of a file may be behind the clock: kernels stamp files with that of their last tick."""


@dataclass
class Found:
    """What differs from the index."""

    removed: list[bytes] = field(default_factory=list)
    written: list[tuple[bytes, bytes, bytes]] = field(default_factory=list)
    """Mode, object, path."""
    left_out: list[LeftOut] = field(default_factory=list)
    more: int = 0

    def leave_out(self, entry: LeftOut) -> None:
        if len(self.left_out) < LISTED_AS_LEFT_OUT:
            self.left_out.append(entry)
        else:
            self.more += 1


@dataclass(frozen=True)
class Captured:
    checkpoint: Checkpoint
    index: WorkIndex
    found: Found


class Capture:
    """Records one project for one session."""

    def __init__(self, repository: Repository, root: str, limits: CheckpointsConfig, own: Path) -> None:
        """`own` is the state folder, which is never recorded."""
        self._repository = repository
        self._git = repository.git
        self._root = root
        self._limits = limits
        self._own_folder = _inside(root, own)
        self._own = own_pattern(root, own)

    @contextmanager
    def take(self, session_id: str, mark: Mark, turn: int, reference: str) -> Iterator[Checkpoint]:
        """Record the project on a reference; at the end of the block the index is brought up to date."""
        with self._repository.writing(self._root), self._repository.index(session_id) as index:
            try:
                captured = self._take(index, mark, turn, reference)
            except CheckpointError:
                if index.tree is None or not Path(self._root).is_dir():
                    raise
                captured = None  # the index or what it stands for may be damaged
            if captured is not None:
                yield captured.checkpoint
                self._settle(captured)
                return
            with self._repository.index(session_id, empty=True) as fresh:
                captured = self._take(fresh, mark, turn, reference)
                yield captured.checkpoint
                self._settle(captured)

    @contextmanager
    def look(self, session_id: str, turn: int, reference: str, *, keep: bool = False) -> Iterator[Checkpoint]:
        """Record the present on a reference that the caller removes; `keep` its index for the next checkpoint."""
        with self._repository.writing(self._root), self._repository.index(session_id) as index:
            captured = self._take(index, Mark("end"), turn, reference)
            yield captured.checkpoint
            if keep:
                self._settle(captured)

    @property
    def largest(self) -> int:
        """Bytes of the largest file that is recorded without more questions."""
        return min(self._limits.max_file_bytes, self._limits.max_bytes)

    def watch(self, session_id: str) -> ProjectWatch:
        """A watch of all folders that a checkpoint looks at; raises `CannotWatch`."""
        own = os.fsencode(self._own_folder) if self._own_folder is not None else None
        return ProjectWatch(self._root, lambda: self._ignored_folders(session_id), own)

    def _take(self, index: WorkIndex, mark: Mark, turn: int, reference: str) -> Captured:
        found = Found()
        # It starts while git looks for changes: starting takes longer than what it does for a few files.
        with self._git.started("fast-import", "--quiet", "--done", "--depth=0") as importing:
            try:
                others, changed = self._list(index)
            except CheckpointError:
                importing.process.communicate(b"done\n")  # a pack that is begun is left behind otherwise
                raise
            pipe = importing.process.stdin
            assert pipe is not None and importing.process.stdout is not None
            try:
                with Tree(self._root) as tree:
                    for piece in self._read(tree, others, changed, found):
                        pipe.write(piece)
                pipe.write(b"progress stored\n")
                pipe.flush()
                importing.process.stdout.readline()  # from here on it is quick: `mark.late` is final
                checkpoint = checkpoint_of(mark, turn, time.time(), found.left_out, found.more)
                pipe.write(_commit(reference, self._parent(reference), index.tree, checkpoint, found))
                pipe.flush()
                told = importing.process.stdout.read().split()
            except OSError as error:
                if not isinstance(error, BrokenPipeError):
                    raise CheckpointError(f"{self._root} could not be read: {error.strerror}") from error
                told = []
        try:
            importing.check()
        except CheckpointError:
            self._repository.remove_drafts()
            raise
        if len(told) < 4:
            raise CheckpointError("git fast-import did not say what it recorded.")
        commit, tree_id = told[0].decode(), told[3].decode()
        return Captured(msgspec.structs.replace(checkpoint, id=commit, tree=tree_id), index, found)

    def _parent(self, reference: str) -> str | None:
        kind, _, name = reference.removeprefix("refs/").partition("/")
        return self._repository.tip(name) if kind == "sessions" else None

    # -- what is there

    def _list(self, index: WorkIndex) -> tuple[list[bytes], list[bytes]]:
        """Names that the index does not have, and names whose files differ from it."""
        limit = self._limits.max_files
        with (
            self._git.started(*self._listing(), index=index.path, tree=self._root) as finding,
            self._git.started("ls-files", "-z", "-m", "-d", index=index.path, tree=self._root) as comparing,
        ):
            others = self._names(finding)
            changed = self._names(comparing)
        for running in (finding, comparing):
            running.check()
        if index.tree is not None and others and self._count(index) + len(others) > limit:
            raise self._too_many()
        return others, list(dict.fromkeys(changed))

    def _listing(self) -> list[str]:
        exclude = [f"--exclude={self._own}"] if self._own is not None else []
        return ["ls-files", "-z", "-o", "--exclude-standard", *exclude]

    def _ignored_folders(self, session_id: str) -> frozenset[bytes]:
        """Folders that `.gitignore` names, without those below them; one with a recorded file is not among them."""
        words = [*self._listing(), "-i", "--directory"]
        with self._repository.writing(self._root), self._repository.index(session_id) as index:
            with self._git.started(*words, index=index.path, tree=self._root) as listing:
                names = self._names(listing)
            listing.check()
        return frozenset(name[:-1] for name in names if name.endswith(b"/"))

    def _names(self, running: Running) -> list[bytes]:
        names = running.names(self._limits.max_files * 2)
        if len(names) > self._limits.max_files * 2:
            raise self._too_many()
        return names

    def _count(self, index: WorkIndex) -> int:
        """Entries of an index, from its head."""
        with index.path.open("rb") as file:
            return int.from_bytes(file.read(12)[8:12])

    def _too_many(self) -> CheckpointError:
        return CheckpointError(
            f"{self._root} has more than {self._limits.max_files} files (checkpoints.max_files), so it is not recorded: "
            "let .gitignore name what is made by programs, or raise the limit.",
            "too_many_files",
        )

    def _read(self, tree: Tree, others: list[bytes], changed: list[bytes], found: Found) -> Iterator[bytes]:
        """The contents as blobs of a fast-import stream; `found` is filled on the way."""
        files = [name for name in others if not name.endswith(b"/")]
        if len(files) > self._limits.max_files:
            raise self._too_many()
        for name in others:
            if name.endswith(b"/"):  # another repository, or a submodule
                found.leave_out(LeftOut(shown(name), "repository"))
        room = self._room()
        names = sorted({*files, *changed})
        if self._size(tree, names) > room:  # before anything is written
            raise self._no_room()
        for name in names:
            content = self._content(tree, name, found)
            if content is None:
                found.removed.append(name)
                continue
            room -= len(content.data)
            if room < 0:
                raise self._no_room()
            head = b"blob %d\0" % len(content.data)
            object_id = hashlib.sha1(head + content.data, usedforsecurity=False).hexdigest().encode()
            found.written.append((content.mode, object_id, name))
            yield b"blob\ndata %d\n" % len(content.data)
            yield content.data
            yield b"\n"

    def _size(self, tree: Tree, names: list[bytes]) -> int:
        """Bytes that would be read, as far as can be told."""
        total = 0
        for name in names:
            try:
                found = tree.present(name)
            except OSError:
                continue
            if found is not None and found.st_size <= self._limits.max_file_bytes:
                total += found.st_size
        return total

    def _content(self, tree: Tree, name: bytes, found: Found) -> Content | None:
        try:
            return tree.read(name, self._limits.max_file_bytes)
        except TooLarge as error:
            found.leave_out(LeftOut(shown(name), "too_large", error.size))
        except OSError:
            found.leave_out(LeftOut(shown(name), "unreadable"))
        return None

    def _room(self) -> int:
        disk = os.statvfs(self._repository.directory)
        return max(0, min(self._limits.max_bytes, disk.f_bavail * disk.f_frsize - SPARE_BYTES))

    def _no_room(self) -> CheckpointError:
        if self._room() < self._limits.max_bytes:
            return CheckpointError(
                f"The disk of {self._repository.directory.parent} is nearly full, so nothing was recorded: make room.",
                "no_space",
            )
        return CheckpointError(
            f"{self._root} has more than {self._limits.max_bytes} bytes of new content (checkpoints.max_bytes), so it "
            "is not recorded: let .gitignore name what is made by programs, or raise the limit.",
            "too_many_bytes",
        )

    # -- the index, for the next time

    def _settle(self, captured: Captured) -> None:
        index, found = captured.index, captured.found
        rows = [b"0 %s\t%s\0" % (NO_OBJECT, name) for name in found.removed]
        rows += [b"%s %s\t%s\0" % row for row in found.written]
        if rows or not index.path.exists():
            self._git.run(
                *("update-index", "-z", "--add", "--remove", "--replace", "--index-info"),
                given=b"".join(rows),
                index=index.path,
                tree=self._root,
            )
        began = time.time_ns() - CLOCK_TICK
        self._git.run(
            *("update-index", "-q", "--refresh", "--force-write-index"),
            index=index.path,
            tree=self._root,
            accepted=(0, 1),
        )
        # git compares times by seconds, and reads again what is not older than the index: the agent works already, so
        # the index counts as old as the moment when git began to look.
        os.utime(index.path, ns=(began, began))
        index.keep(captured.checkpoint.tree)


def checkpoint_of(mark: Mark, turn: int, moment: float, left_out: list[LeftOut], more: int) -> Checkpoint:
    """A checkpoint that has no commit yet; `moment` in seconds since 1970."""
    shown_time = datetime.fromtimestamp(moment, UTC).isoformat(timespec="microseconds")
    return Checkpoint(
        id="",
        tree="",
        kind=mark.kind,
        turn=turn,
        time=shown_time.replace("+00:00", "Z"),
        title=mark.title(),
        late=mark.late,
        after=mark.after,
        left_out=left_out,
        more_left_out=more,
        operation=mark.operation or {},
    )


def _commit(
    reference: str, parent: str | None, base: str | None, checkpoint: Checkpoint, found: Found
) -> bytes:
    """The commit of a fast-import stream, and the questions for its id and its tree."""
    words = message_of([checkpoint])
    seconds = int(datetime.now(UTC).timestamp())
    lines = [
        b"commit %s\nmark :1\ncommitter %s %d +0000\n" % (reference.encode(), AUTHOR, seconds),
        b"data %d\n%s\n" % (len(words), words),
    ]
    if parent is not None:
        lines.append(b"from %s\n" % parent.encode())
    lines.append(b'M 040000 %s ""\n' % base.encode() if base is not None else b"deleteall\n")
    lines += [b"D %s\n" % quoted(name) for name in found.removed]
    lines += [b"M %s %s %s\n" % (mode, object_id, quoted(name)) for mode, object_id, name in found.written]
    lines.append(b'\nget-mark :1\nls :1 ""\ndone\n')
    return b"".join(lines)


def own_pattern(root: str, own: Path) -> str | None:
    """The pattern that excludes our own folder, if it lies in the project."""
    relative = _inside(root, own)
    if relative is None:
        return None
    escaped = "".join(f"\\{sign}" if sign in "*?[\\ !#" else sign for sign in relative)
    return f"/{escaped}/"


def _inside(root: str, own: Path) -> str | None:
    """Our own folder below the project's root, if it lies there."""
    real = Path(os.path.realpath(own))
    if not real.is_relative_to(root):
        return None
    relative = str(real.relative_to(root))
    if relative == ".":
        raise CheckpointError(f"{root} is Dragoman's own folder, which is not recorded.", "own_folder")
    return relative
