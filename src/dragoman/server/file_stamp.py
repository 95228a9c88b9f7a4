"""Whether a file is another one than before, by one `stat`."""

from __future__ import annotations

from pathlib import Path

Stamp = tuple[int, int, int]


def stamp_of(file: Path) -> Stamp | None:
    """None while there is none."""
    try:
        state = file.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino
