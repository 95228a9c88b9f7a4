"""Watches all folders of a project that may hold recorded files, to say for certain that nothing changed.

Theory of operation. A folder is watched before it is read, so that whatever changes after the look is in the queue.
Folders that `.gitignore` names are not watched; git lists them, and lists them again once all others are watched: if
both lists are the same, a change of what is ignored is in the queue too. A watch that no longer covers the project
(folders came or went, a `.gitignore` changed, the queue overflowed) is closed, and a new one is made.

Each time the queue is emptied, `generation` rises first. So a comparison that began in a generation still holds if that
is the present one and the queue is empty; else the names of the events say which files may have changed since.

inotify does not report a write through a shared mapping before the file is closed, nor a write through a hard link
outside the project. Such a change is found when files are compared the next time (`known.COMPARE_AFTER`).
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from dragoman.checkpoints.watching import inotify
from dragoman.checkpoints.watching.inotify import Inotify

NAMES = 64
"""Files that may have changed, by name; for more of them the project is compared."""
FOLDERS = 4_000
"""Folders of one project: the kernel has a limit for all programs of a user, which may be 8,192."""
TRIES = 3
_REPOSITORY = b".git"
_STRUCTURAL = frozenset({_REPOSITORY, b".gitignore"})
_STRUCTURAL_EVENTS = (
    inotify.IS_FOLDER
    | inotify.OVERFLOW
    | inotify.IGNORED
    | inotify.UNMOUNT
    | inotify.DELETE_SELF
    | inotify.MOVE_SELF
)
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES)
"""A folder that went meanwhile is an event of the folder above; one that we may not read, git does not read either."""


class CannotWatch(Exception):
    """Changes in this project cannot be noticed; the text says why."""


class ProjectWatch:
    def __init__(self, root: str, ignored: Callable[[], frozenset[bytes]], own: bytes | None) -> None:
        """`ignored` lists the ignored folders below the root; `own` is the state folder, if it is there too."""
        self._root = os.fsencode(root)
        self._own = own
        self._disks: dict[int, bool] = {}
        self._reading = threading.RLock()
        self._closing = threading.Lock()
        """Held for moments only: the event loop takes it."""
        self._closed = False
        self._folders: dict[int, bytes] = {}
        """Path below the root of each watched folder, by its number."""
        self._changed: dict[bytes, int] = {}
        """The generation in which each file may have changed last."""
        self._named_since = 0
        """From this generation on `_changed` has all files."""
        self.generation = 0
        try:
            self._queue = Inotify()
        except OSError as error:
            raise CannotWatch(f"no inotify: {error.strerror or error}") from error
        try:
            self._watch_place()
            self._cover(ignored)
        except OSError as error:
            self.close()
            raise CannotWatch(f"{root} cannot be watched: {error.strerror}") from error
        except BaseException:
            self.close()
            raise

    def _watch_place(self) -> None:
        """Notice that a folder above the root is moved: the path means another folder then, or none."""
        for above in Path(os.fsdecode(self._root)).parents:
            with suppress(PermissionError):  # a folder of the system, which only the system moves
                self._queue.add(os.fsencode(above), inotify.MOVE_SELF | inotify.DELETE_SELF)

    def _cover(self, ignored: Callable[[], frozenset[bytes]]) -> None:
        left = ignored()
        for _ in range(TRIES):
            self._watch_all(left)
            before, left = left, ignored()
            if left == before:
                return
        raise CannotWatch("what is ignored changes all the time")

    def _watch_all(self, ignored: frozenset[bytes]) -> None:
        found = [b""]
        watched = 0
        while found:
            below = found.pop()
            watched += 1
            if watched > FOLDERS:
                raise CannotWatch(f"more than {FOLDERS} folders")
            try:
                found += self._watch_folder(below, ignored)
            except OSError as error:
                if not below or error.errno not in _NOT_THERE:
                    raise

    def _watch_folder(self, below: bytes, ignored: frozenset[bytes]) -> list[bytes]:
        """Watch one folder; returns the folders in it that are watched next."""
        path = self._root + b"/" + below if below else self._root
        self._check_disk(path)
        self._folders[self._queue.add(path, inotify.CHANGES)] = below
        with os.scandir(path) as listed:
            entries = [
                entry for entry in listed if entry.is_dir(follow_symlinks=False) or entry.name == _REPOSITORY
            ]
        if below and any(entry.name == _REPOSITORY for entry in entries):
            return []  # another repository, which is not recorded
        names = [
            below + b"/" + entry.name if below else entry.name
            for entry in entries
            if entry.name != _REPOSITORY
        ]
        return [name for name in names if name not in ignored and name != self._own]

    def _check_disk(self, path: bytes) -> None:
        disk = os.lstat(path).st_dev
        if disk not in self._disks:
            self._disks[disk] = self._queue.on_local_disk(path)
        if not self._disks[disk]:
            raise CannotWatch("a network disk, or one whose changes inotify may not report")

    def quiet_since(self, generation: int) -> bool:
        """Whether nothing changed since a comparison began in that generation; quick, for any thread."""
        with self._closing:
            return not self._closed and self.generation == generation and not self._queue.pending()

    def begin(self) -> int | None:
        """Empty the queue before files are compared; returns the generation, or None if not all folders are watched."""
        with self._reading:
            if self._closed:
                return None
            if self._queue.pending():
                self.generation += 1  # first, so that no thread finds an empty queue in the old generation
                if self._take_events():
                    self.close()
                    return None
            return self.generation

    def _take_events(self) -> bool:
        """Empty the queue and note the names; whether folders may have come that are not watched."""
        structural = False
        for folder, mask, name in self._queue.events():
            if structural or mask & _STRUCTURAL_EVENTS or name in _STRUCTURAL or folder not in self._folders:
                structural = True
                continue
            below = self._folders[folder]
            self._changed[below + b"/" + name if below else name] = self.generation
            if len(self._changed) > NAMES:
                self._changed.clear()
                self._named_since = self.generation
        return structural

    def changed_since(self, generation: int) -> list[bytes] | None:
        """Files that may have changed since a comparison began in that generation; None if they are too many."""
        with self._reading:
            if self._closed or generation < self._named_since:
                return None
            return [path for path, changed in self._changed.items() if changed > generation]

    def close(self) -> None:
        with self._reading:
            with self._closing:
                if self._closed:
                    return
                self._closed = True
            self._queue.close()

    @property
    def closed(self) -> bool:
        return self._closed
