"""Replaces a file in one step: a reader sees the old content or the new one, never a part."""

from __future__ import annotations

import os
from pathlib import Path

PRIVATE = 0o600


def replace_file(path: Path, data: bytes) -> None:
    """Write `data` to a new file beside `path`, private to the user, and rename it over `path`.

    Raises `OSError` and leaves `path` as it was. The new file has a name of its own, so that threads and processes that
    replace the same file do not write into each other's.
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
