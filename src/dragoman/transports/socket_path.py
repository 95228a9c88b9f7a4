"""Unix sockets in deep folders: the kernel takes about a hundred bytes of path, people's homes are longer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MAX_BYTES = 100
"""Linux has room for 107, macOS for 103."""


@contextmanager
def short_path(path: Path) -> Iterator[str]:
    """A name for the same socket that fits, valid inside the `with`; where there is none, the path itself."""
    if len(os.fsencode(path)) <= MAX_BYTES or not Path("/proc/self/fd").is_dir():
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
