"""Replaces a file in one step: a reader sees the old content or the new one, never a part."""

from __future__ import annotations

import os
from pathlib import Path

PRIVATE = 0o600


def replace_file(path: Path, data: bytes) -> None:
    """Write `data` to a file beside `path`, private to the user, and rename it over `path`.

    On failure `OSError` is raised and `path` is unchanged. A draft left by a killed process is overwritten by a later
    process with the same id.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(
            draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE
        )
        with os.fdopen(descriptor, "wb") as out:
            out.write(data)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
