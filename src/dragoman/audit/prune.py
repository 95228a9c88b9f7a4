"""Removes segments that are older than the configuration keeps; what remains stays provable."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from dragoman.audit import folder as places
from dragoman.audit import seek
from dragoman.audit.keys import Key, load_key
from dragoman.wire.timestamps import timestamp


def prune(folder: Path, before: int) -> int:
    """Remove what was last written to before that time, in milliseconds; returns the number of segments.

    The index is told first, signed, how far a chain is removed and the hash of the last line: the rest begins with it.
    Raises `KeyProblem` and removes nothing if that cannot be signed.
    """
    removed = 0
    key: Key | None = None
    limit = timestamp(before)
    for chain in places.chains(folder):
        paths = places.segments(chain)
        old = []
        for path in paths if not places.is_alive(chain) else paths[:-1]:
            end = places.end_of_file(path)
            if end is None or end.at >= limit:
                break
            old.append((path, end))
        if not old:
            continue
        last = old[-1][1]
        key = key or load_key(folder)
        told: dict[str, Any] = {"chain": chain.name, "upTo": last.n, "hash": last.hash, "before": limit}
        places.add_to_index(folder, "pruned", key=key, **told)
        for path, _ in old:
            path.unlink()
            path.with_suffix(seek.SUFFIX).unlink(missing_ok=True)
            removed += 1
        if len(old) == len(paths):
            with suppress(OSError):
                (chain / places.LOCK).unlink()
                chain.rmdir()
    return removed
