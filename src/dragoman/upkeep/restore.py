"""`dragoman restore`: replaces the content of the state folder by a back-up.

The state folder itself stays: it may be a mount point, and the folder above it need not be writable. Its entries are
replaced one by one, all within the folder:

    .restore/new/       the back-up, read to its end, checked, flushed to the disk
    .restore/plan       written after that: from now on the restore is always completed
    before-DATE-PID/    the previous content

An interruption before the plan is written changes nothing. Afterwards every entry is in one of these places, and
`finish` continues where the restore stopped: every command calls it before doing anything else. Files of running
processes (`run`, `custody`, `cache`, locks) are not touched.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path, PurePosixPath
from typing import IO

import msgspec

from dragoman.atomic_file import sync_folder
from dragoman.gateway.ports.store import SchemaTooNew, StoreBusy, StoreCorrupt, StoreError, StoreUnavailable
from dragoman.search import index
from dragoman.store.database import VERSION, has_old_tables, version
from dragoman.store.failure import explain
from dragoman.store.locks import Folder
from dragoman.upkeep import archive
from dragoman.upkeep.archive import DATABASE, Manifest, Say
from dragoman.upkeep.old_owners import is_alive

WORK = ".restore"


class Plan(msgspec.Struct, frozen=True):
    """Which entries of the state folder move to the folder `before`, and which new ones replace them."""

    before: str
    old: list[str]
    new: list[str]


def restore(source: Path, state: Path, say: Say, *, replace: bool = False) -> tuple[Manifest, Path | None]:
    """Restore a back-up; returns its manifest, and the folder with the previous content."""
    work = state / WORK
    if not source.exists():  # said also while other processes are in the way
        raise StoreCorrupt(f"{source} cannot be read: No such file or directory.")
    try:
        state.mkdir(parents=True, mode=0o700, exist_ok=True)
        in_use = _alone(state)
        try:
            finished = is_interrupted(state)
            _finish(state)
            if not replace and _entries(state):
                why = ": a restore that was interrupted is complete now" if finished else ""
                raise StoreUnavailable(
                    f"{state} is not empty{why}; --replace moves what is in it aside first."
                )
            shutil.rmtree(work, ignore_errors=True)  # of an interrupted attempt
            (work / "new").mkdir(parents=True, mode=0o700)
            try:
                manifest = archive.read(source, lambda name: _Output(work / "new", name), say)
                _begin_epochs(work / "new" / DATABASE)
                before = _plan(state)
            except BaseException:
                shutil.rmtree(work, ignore_errors=True)
                raise
            try:
                _finish(state)
            except OSError:
                _undo(state)
                raise
        finally:
            os.close(in_use)
    except OSError as error:
        raise _failed(state, error) from error
    return manifest, before


def is_interrupted(state: Path) -> bool:
    """Whether a restore stopped while it replaced entries."""
    return (state / WORK / "plan").exists()


def finish(state: Path) -> Path | None:
    """Complete an interrupted restore; returns the folder with the previous content."""
    try:
        in_use = _alone(state)
        try:
            return _finish(state)
        finally:
            os.close(in_use)
    except OSError as error:
        raise _failed(state, error) from error


def discard(state: Path) -> None:
    """Remove the files of a restore that was interrupted before it changed anything."""
    in_use = _alone(state)
    try:
        if not is_interrupted(state):
            shutil.rmtree(state / WORK, ignore_errors=True)
    finally:
        os.close(in_use)


def _failed(state: Path, error: OSError) -> StoreError:
    if not is_interrupted(state):
        where = f" ({error.filename})" if error.filename else ""
        why = f"{error.strerror or error}{where}"
        return StoreUnavailable(f"{state} could not be restored and is as it was: {why}.")
    return StoreUnavailable(
        f"The restore stopped halfway: {error.strerror or error} ({error.filename}). The next start goes on with it. "
        f"What is restored is in {state} and {state / WORK / 'new'}, what was there before in {state}/{archive.BEFORE}*."
    )


def _alone(state: Path) -> int:
    try:
        in_use = Folder(state).use(alone=True)
    except StoreBusy as error:
        raise StoreBusy(
            f"{state} is in use: stop every Dragoman process of it first (`dragoman serve`, editors)."
        ) from error
    for lock in (state / "owners").glob("*.lock"):  # of versions that did not lock the folder
        if is_alive(lock, "", 0):
            os.close(in_use)
            raise StoreBusy(f"{state} is in use by an older Dragoman process; stop it first.")
    return in_use


def _entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not archive.is_left_out(path.name))


class _Output:
    """A new file for a member of a back-up."""

    def __init__(self, folder: Path, name: str) -> None:
        """Raises for a name that leads out of the folder."""
        parts = PurePosixPath(name).parts
        if not parts or PurePosixPath(name).is_absolute() or ".." in parts or "\0" in name:
            raise StoreCorrupt(f"The back-up has a file {name!r}, which is outside of its folder.")
        self._path = folder.joinpath(*parts)
        try:
            self._file = self._open(folder, parts)
        except OSError as error:
            raise explain(error, self._path) from error

    def _open(self, folder: Path, parts: tuple[str, ...]) -> IO[bytes]:
        for part in parts[:-1]:
            folder = folder / part
            folder.mkdir(mode=0o700, exist_ok=True)
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
        return os.fdopen(os.open(self._path, flags, 0o600), "wb", buffering=0)

    def write(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            raise explain(error, self._path) from error

    def close(self) -> None:
        try:
            self._file.close()
        except OSError as error:
            raise explain(error, self._path) from error


def _begin_epochs(database: Path) -> None:
    """Clear the owner of every session, and begin an epoch that the replaced store cannot have used."""
    try:
        with closing(sqlite3.connect(database)) as connection:
            if version(connection) > VERSION:
                raise SchemaTooNew(
                    "The back-up was made by a newer Dragoman. Upgrade Dragoman to restore it."
                )
            tables = ["directory", *(["heads"] if has_old_tables(connection) else [])]
            for table in tables:
                connection.execute(
                    f"UPDATE {table} SET owner = NULL, epoch = max(epoch + 1, ?)", (int(time.time()),)
                )
            if "heads" in tables:  # processes of an older version, which do not run with the back-up
                connection.execute("DELETE FROM owners")
            connection.commit()
    except sqlite3.Error as error:
        raise explain(error, database) from error


def _plan(state: Path) -> Path | None:
    """Write the plan; returns the folder for the old entries."""
    old, new = _entries(state), sorted(path.name for path in (state / WORK / "new").iterdir())
    before = f"{archive.BEFORE}{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    draft = state / WORK / "draft"
    draft.write_bytes(msgspec.json.encode(Plan(before, old, new)))
    os.sync()
    draft.rename(state / WORK / "plan")
    sync_folder(state / WORK)
    return state / before if old else None


def _finish(state: Path) -> Path | None:
    """Move old entries that are not in `before` yet, then new ones that are still in `new`."""
    work = state / WORK
    if not is_interrupted(state):
        return None
    plan = msgspec.json.decode((work / "plan").read_bytes(), type=Plan)
    before = state / plan.before
    if plan.old:
        before.mkdir(mode=0o700, exist_ok=True)
    for name in plan.old:
        if not _exists(before / name):
            with suppress(FileNotFoundError):
                (state / name).rename(before / name)
    for name in plan.new:
        if _exists(work / "new" / name):
            (work / "new" / name).rename(state / name)
    index.remove(state)  # of the sessions that were there before
    sync_folder(state)
    (work / "plan").unlink()
    shutil.rmtree(work, ignore_errors=True)
    return before if plan.old else None


def _undo(state: Path) -> None:
    """Move all entries back, after one could not be moved, such as a mount point."""
    work = state / WORK
    plan = msgspec.json.decode((work / "plan").read_bytes(), type=Plan)
    before = state / plan.before
    with suppress(OSError):  # then the plan stays
        for name in plan.new:
            if not _exists(work / "new" / name):
                (state / name).rename(work / "new" / name)
        for name in plan.old:
            if _exists(before / name):
                (before / name).rename(state / name)
        (work / "plan").unlink()
        shutil.rmtree(work, ignore_errors=True)
        before.rmdir()


def _exists(path: Path) -> bool:
    return os.path.lexists(path)
