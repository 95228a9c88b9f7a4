"""Turns errors of SQLite and the operating system into the port's errors."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dragoman.gateway.ports import store as port

_LEFT = "It was left as it is: restore a backup or move it away."

_BY_CODE: dict[int, tuple[type[port.StoreError], str]] = {
    sqlite3.SQLITE_BUSY: (port.StoreBusy, "{path} is locked by another process for too long; try again."),
    sqlite3.SQLITE_FULL: (port.StoreFull, "No space is left for {path}; free some, nothing stored was lost."),
    sqlite3.SQLITE_READONLY: (port.StoreReadOnly, "{path} cannot be written: disk or folder is read-only."),
    sqlite3.SQLITE_READONLY_DBMOVED: (
        port.StoreUnavailable,
        "{path} was moved or deleted; restart Dragoman.",
    ),
    sqlite3.SQLITE_READONLY_CANTINIT: (
        port.StoreReadOnly,
        "{path} has unfinished writes; copy it to a writable disk.",
    ),
    sqlite3.SQLITE_PERM: (port.StoreReadOnly, "{path} cannot be written: permission denied."),
    sqlite3.SQLITE_CANTOPEN: (port.StoreUnavailable, "{path} or its folder cannot be opened."),
    sqlite3.SQLITE_CORRUPT: (port.StoreCorrupt, f"{{path}} is damaged ({{detail}}). {_LEFT}"),
    sqlite3.SQLITE_NOTADB: (port.StoreCorrupt, f"{{path}} is not a database ({{detail}}). {_LEFT}"),
}

_BY_ERRNO: dict[int, tuple[type[port.StoreError], str]] = {
    errno.ENOSPC: (port.StoreFull, "No space is left for {path}; free some."),
    errno.EDQUOT: (port.StoreFull, "The disk quota is used up; {path} cannot grow."),
    errno.EMFILE: (port.StoreUnavailable, "{path} cannot be opened: too many open files; raise `ulimit -n`."),
    errno.EROFS: (port.StoreReadOnly, "{path} cannot be written: the disk is read-only."),
    errno.EACCES: (port.StoreReadOnly, "{path} cannot be {verb}: permission denied."),
    errno.EPERM: (port.StoreReadOnly, "{path} cannot be {verb}: not permitted."),
}

_OTHER: tuple[type[port.StoreError], str] = (port.StoreUnavailable, "{path} failed: {detail}.")


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Raise the port's errors instead of those of SQLite and the operating system."""
    try:
        yield
    except (sqlite3.Error, OSError, ValueError, OverflowError) as error:
        raise explain(error, path) from error


def explain(error: Exception, path: Path) -> port.StoreError:
    """The store error for an exception of SQLite or the operating system; its message names `path`."""
    if isinstance(error, OSError) and error.errno is not None:
        kind, text = _BY_ERRNO.get(error.errno, _OTHER)
        place = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else str(path)
        return kind(text.format(path=place, detail=error.strerror, verb=_refused(place)))
    if isinstance(error, MemoryError):
        return port.StoreUnavailable(f"{path} cannot be written: no memory is left.")
    if not isinstance(error, (sqlite3.Error, OSError)):
        return port.BadEvent(f"The record cannot be stored: {error}.")
    # Errors of the Python module itself ("Cannot operate on a closed database") carry no code.
    code = getattr(error, "sqlite_errorcode", None) or 0
    kind, text = _BY_CODE.get(code) or _BY_CODE.get(code & 0xFF) or _OTHER
    return kind(text.format(path=path, detail=error))


def _refused(path: str) -> str:
    """The access that a path refuses: "read" if it cannot even be read or found, else "written"."""
    place = path if os.path.exists(path) else os.path.dirname(path)  # noqa: PTH110, PTH120 (no error for a folder without rights)
    needed = os.R_OK | os.X_OK if os.path.isdir(place) else os.R_OK  # noqa: PTH112
    return "written" if os.access(place, needed) else "read"


def too_new(path: Path, found: int, known: int) -> port.SchemaTooNew:
    return port.SchemaTooNew(
        f"{path} was written by a newer Dragoman (format {found}, this one knows {known}) and left as it is. "
        "Upgrade Dragoman, or set DRAGOMAN_HOME to use another folder."
    )
