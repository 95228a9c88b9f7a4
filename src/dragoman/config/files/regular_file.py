"""Reads a file that another program may have made: only a regular file, and only up to a limit.

A FIFO in its place would block for ever, and a device would never end.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from dragoman.config.errors import ConfigError

_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def read_regular(file: Path, limit: int) -> bytes | None:
    """All bytes of a file, None if it is missing; `ConfigError` if it is not regular or has more than `limit` bytes."""
    try:
        # Checked before it is opened, too: opening a device can have side effects.
        _check(file, file.stat(), limit)
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        with os.fdopen(descriptor, "rb") as stream:
            _check(file, os.fstat(descriptor), limit)
            content = stream.read(limit + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error
    if len(content) > limit:
        raise _too_large(file, limit)
    return content


def _check(file: Path, status: os.stat_result, limit: int) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if kind != stat.S_IFREG:
        what = _KINDS.get(kind, "something else")
        raise ConfigError(f"{file}: is {what}, not a file: remove it, or put a regular file there")
    if status.st_size > limit:
        raise _too_large(file, limit)


def _too_large(file: Path, limit: int) -> ConfigError:
    return ConfigError(f"{file}: is too large: more than {limit} bytes are not read from it")
