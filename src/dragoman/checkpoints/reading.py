"""Reads files below a project's root as data: no symlink is followed, no pipe or device is waited for.

A path is opened one component at a time from the root's descriptor, so that a folder that an agent replaces by a symlink
between two looks is refused instead of followed.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from types import TracebackType

_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
GONE = (errno.ENOENT, errno.ENOTDIR)
OPEN_FOLDERS = 64
"""Folders that are kept open: files come sorted, so that the next one is mostly in the same folder."""

REGULAR, EXECUTABLE, SYMLINK = b"100644", b"100755", b"120000"


@dataclass(frozen=True, slots=True)
class Content:
    """A file as git records it."""

    mode: bytes
    data: bytes


class TooLarge(Exception):
    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


class Tree:
    """A project's root, opened; close it with `with`."""

    def __init__(self, root: str) -> None:
        self._root = os.open(root, _FOLDER)
        self._folders: dict[bytes, int] = {b"": self._root}

    def __enter__(self) -> Tree:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.forget()
        os.close(self._root)

    def forget(self) -> None:
        """Close the folders that are kept open; they may have been moved."""
        for path, descriptor in self._folders.items():
            if path:
                os.close(descriptor)
        self._folders = {b"": self._root}

    def folder(self, path: bytes) -> int:
        """The descriptor of a folder below the root; raises `OSError`, also for a symlink."""
        found = self._folders.get(path)
        if found is not None:
            return found
        if len(self._folders) >= OPEN_FOLDERS:
            self.forget()
        above, _, name = path.rpartition(b"/")
        descriptor = os.open(name, _FOLDER, dir_fd=self.folder(above))
        self._folders[path] = descriptor
        return descriptor

    def read(self, path: bytes, limit: int) -> Content | None:
        """The file; None if there is none, or no regular one; raises `TooLarge` or `OSError`."""
        above, _, name = path.rpartition(b"/")
        try:
            return self._read(self.folder(above), name, limit)
        except OSError as error:
            if error.errno in GONE:
                return None
            if error.errno == errno.ELOOP and above not in self._folders:
                return None  # a symlink is on the way: git does not look behind it either
            raise

    def _read(self, folder: int, name: bytes, limit: int) -> Content | None:
        try:
            descriptor = os.open(name, _FILE, dir_fd=folder)
        except OSError as error:
            if error.errno == errno.ELOOP:
                return Content(SYMLINK, os.readlink(name, dir_fd=folder))
            if error.errno in (errno.ENXIO, errno.EOPNOTSUPP):
                return None  # a socket, or a device without a driver
            raise
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return None
            if status.st_size > limit:
                raise TooLarge(status.st_size)
            data = _read_all(descriptor, status.st_size, limit)
            return Content(EXECUTABLE if status.st_mode & stat.S_IXUSR else REGULAR, data)
        finally:
            os.close(descriptor)

    def present(self, path: bytes) -> os.stat_result | None:
        """What stands at a path, itself a symlink perhaps; None if nothing does."""
        above, _, name = path.rpartition(b"/")
        try:
            return os.stat(name, dir_fd=self.folder(above), follow_symlinks=False)
        except OSError as error:
            if error.errno in GONE:
                return None
            raise


def _read_all(descriptor: int, expected: int, limit: int) -> bytes:
    data = os.read(descriptor, expected + 1)
    if len(data) == expected:
        return data
    parts = [data]
    size = len(data)
    while piece := os.read(descriptor, 1 << 20):  # it grew, or a network disk returned less
        parts.append(piece)
        size += len(piece)
        if size > limit:
            raise TooLarge(size)
    return b"".join(parts)
