"""Unix sockets in deep folders: the kernel takes about a hundred bytes of path, and home directories can be longer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MAX_BYTES = 100
"""Longest path that is used as it is; Linux allows 107 bytes, macOS 103."""


@contextmanager
def short_path(path: Path) -> Iterator[str]:
    """Yield a shorter name for the same socket, valid inside the `with`; without `/proc/self/fd` the path itself."""
    if len(os.fsencode(path)) <= MAX_BYTES or not Path("/proc/self/fd").is_dir():
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
