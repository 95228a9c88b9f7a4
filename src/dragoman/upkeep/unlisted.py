"""Finds sessions that have a journal and are not in the directory; `dragoman doctor --fix` adds them again."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path

from dragoman.gateway.ports.store import UnknownSession
from dragoman.store import database, locks, segments
from dragoman.store.failure import explained
from dragoman.store.locks import DESCRIPTION, Folder
from dragoman.upkeep import repair

FEW = 100
"""Number of sessions whose folders can be examined one by one without delay."""


def unlisted(path: Path) -> list[str]:
    """The ids of these sessions in the store at `path`; blocks.

    Folders are listed before the directory is read, so that a session added meanwhile counts as known. If at most `FEW`
    are left, empty folders and those that a process is creating or deleting are left out.
    """
    folder = Folder(path.absolute().parent)
    try:
        found = set(folder.sessions())
    except OSError:
        return []  # reading a session reports the error
    found = {name for name in found - _listed(path) if _is_id(folder, name)} if found else found
    if len(found) <= FEW:
        found = {name for name in found if _is_left(folder.of(name))}
    return sorted(found)


def _listed(path: Path) -> set[str]:
    """The ids of all sessions in the directory, including those not converted yet."""
    with explained(path), closing(repair.reader(path)) as connection:
        tables = ["directory", *(["heads"] if database.has_old_tables(connection) else [])]
        return {row[0] for table in tables for row in connection.execute(f"SELECT id FROM {table}")}


def _is_id(folder: Folder, name: str) -> bool:
    with suppress(UnknownSession):
        folder.of(name)
        return True
    return False


def _is_left(home: Path) -> bool:
    with suppress(OSError):
        return ((home / DESCRIPTION).exists() or bool(segments.segments(home))) and locks.holder(home) is None
    return True  # no permission to read, so not being created by us
