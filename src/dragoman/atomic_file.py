"""Files: replaced in one step, locked, flushed to the disk, closed once."""

from __future__ import annotations

import errno
import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

PRIVATE = 0o600
Stamp = tuple[int, int, int]
LOCK_PAUSE = 0.002
"""Seconds between attempts to lock a file within a bound."""


class OpenFile:
    """A file descriptor that is closed once, at the latest when nothing refers to it any more."""

    descriptor = -1

    def close(self) -> None:
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    __del__ = close


def replace_file(path: Path, data: bytes) -> None:
    """Write `data` to a new file beside `path`, private to the user, and rename it over `path`.

    A reader sees the old content or the new one, never a part. Raises `OSError` and leaves `path` as it was. The new
    file has a name of its own, so that threads and processes that replace the same file do not write into each other's.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(draft, flags, PRIVATE)
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(data)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def stamp_of(file: Path) -> Stamp | None:
    """Changes whenever the file does; None if the file does not exist or cannot be read."""
    try:
        state = file.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino


@contextmanager
def locked(path: Path, seconds: float) -> Iterator[None]:
    """Hold the lock of a file, which is created if missing; waits for other processes.

    Raises `BlockingIOError` if that takes longer than `seconds`.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
    try:
        end = monotonic() + seconds
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if monotonic() >= end:
                    raise
                sleep(LOCK_PAUSE)
        yield
    finally:
        os.close(descriptor)


def lock_holder(path: Path) -> str:
    """The process that holds the lock of a file, for a message; in general words where the system does not tell."""
    try:
        state, table = path.stat(), Path("/proc/locks").read_text()
    except OSError:  # macOS has no such table
        return "another process"
    file = f"{os.major(state.st_dev):02x}:{os.minor(state.st_dev):02x}:{state.st_ino}"
    for line in table.splitlines():
        words = line.split()
        if len(words) > 5 and words[1] == "FLOCK" and words[5] == file and words[4].isdigit():
            return f"the process {words[4]}"
    return "another process"


def sync_data(descriptor: int) -> None:
    """Flush to the disk itself; on macOS `fsync` stops at the drive's cache, so `F_FULLFSYNC` where supported."""
    if sys.platform == "darwin":
        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EINVAL):
                raise
            os.fsync(descriptor)
    else:
        os.fdatasync(descriptor)


def sync_folder(path: Path) -> None:
    """Flush a folder, or a file, to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
