"""Checks a store: `dragoman doctor` shows the findings, and `--fix` repairs them (`repair.py`).

A journal is compared with its row in the directory. The directory may be a second behind the files of a session in
use, so only events that the directory has and the files do not have are a finding.
"""

from __future__ import annotations

import getpass
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from dragoman import machine
from dragoman.gateway.ports.store import SchemaTooNew, StoreError, UnknownSession
from dragoman.search import index
from dragoman.store import database, locks, segments
from dragoman.store.database import Database
from dragoman.store.failure import explained
from dragoman.store.locks import DESCRIPTION, Folder
from dragoman.upkeep import repair, restore
from dragoman.upkeep.archive import Say
from dragoman.upkeep.counts import are, counted, events
from dragoman.upkeep.repair import Numbers

LITTLE_SPACE = 200 * 1024 * 1024
NEW_SECONDS = 60.0
"""A more recent empty folder may belong to a session that is being created."""
PRUNE_SECONDS = 0.5
"""Time that retention may take between removing files and updating the directory."""


class Finding(Struct, frozen=True):
    level: str
    """`ok`, `warning` or `error`."""
    about: str
    detail: str
    advice: str = ""
    fixable: bool = False


class Fix(Struct, frozen=True):
    finding: Finding
    do: Callable[[], object]
    done: str = ""
    """Text to show after the repair; default: the finding."""


Findings: TypeAlias = Iterator[Finding | Fix]


def check(path: Path) -> Findings:
    """Check the whole store at `path`; changes nothing until the caller runs a `Fix`."""
    folder = Folder(path.absolute().parent)
    if (folder.root / restore.WORK).exists():
        detail = (
            f"a restore was interrupted before it changed anything, and left {folder.root / restore.WORK}"
        )
        yield _fix("warning", "restore", detail, "--fix removes it", lambda: restore.discard(folder.root))
    if not path.exists():
        journals = len(list(folder.sessions()))
        if not journals:
            yield Finding("ok", "store", f"no sessions yet ({path} does not exist)")
            return
        there = f"there {'is' if journals == 1 else 'are'} {counted(journals, 'journal')}"
        yield _fix(
            "error", "directory", f"{path} is missing, and {there}",
            "restore a back-up, or --fix to make it again from the journals", lambda: repair.make_directory(path),
        )  # fmt: skip
        if not path.exists():
            return
    yield from _disk(folder)
    try:
        known, old = _read_directory(path)
    except StoreError as error:
        advice = f"restore a back-up (`dragoman restore FILE --replace`), or move {path}* away and --fix"
        if not os.access(folder.root, os.R_OK | os.W_OK | os.X_OK):
            advice = "nothing is known to be damaged: make the folder writable first, then run `dragoman doctor` again"
        yield Finding("error", "directory", str(error), advice)
        return
    yield from _directory(known, old, folder)
    if (trouble := index.check(folder.root)) is not None:
        detail = f"{folder.root / index.FILE} {trouble}"
        advice = "--fix removes it: it is made again from the journals"
        yield _fix("warning", "search", detail, advice, lambda: index.remove(folder.root))
    yield from _sessions(path, folder, known, old)


def check_sessions(path: Path, say: Say) -> Iterator[Finding]:
    """The errors of single sessions in a store whose directory can be read; reports progress to `say`."""
    folder = Folder(path.absolute().parent)
    for found in _sessions(path, folder, *_read_directory(path), say):
        finding = found.finding if isinstance(found, Fix) else found
        if finding.level == "error":
            yield finding


def _sessions(
    path: Path, folder: Folder, known: dict[str, Numbers], old: set[str], say: Say | None = None
) -> Findings:
    with closing(repair.reader(path)) as connection:
        # Connected meanwhile: else each repair would empty the log when it is done.
        database.version(connection)
        ids = sorted(known.keys() | set(folder.sessions()))
        for number, session_id in enumerate(ids, 1):
            if say is not None:
                say(f"checking: {number} of {len(ids)}")
            if session_id not in old:
                yield from _session(path, folder, session_id, known.get(session_id))


def _fix(level: str, about: str, detail: str, advice: str, do: Callable[[], object], done: str = "") -> Fix:
    return Fix(Finding(level, about, detail, advice, fixable=True), do, done)


def _read_directory(path: Path) -> tuple[dict[str, Numbers], set[str]]:
    """The rows of the directory, and the ids of sessions still in the tables of an older version."""
    with explained(path), closing(repair.reader(path)) as connection:
        old = database.has_old_tables(connection)
        converted = database.version(connection) >= database.READABLE
        if converted or not old:
            Database(path).prepare_reading()
        return (
            repair.numbers(connection) if converted else {},
            {row[0] for row in connection.execute("SELECT id FROM heads")} if old else set(),
        )


def _directory(known: dict[str, Numbers], old: set[str], folder: Folder) -> Iterator[Finding]:
    if old:
        which = (
            "1 session is of an older Dragoman and is"
            if len(old) == 1
            else f"{len(old)} sessions are of an older Dragoman and are"
        )
        detail = f"{which} converted at the next start"
        advice = "nothing to do: `dragoman serve`, an editor or `dragoman sessions list` is a start"
        yield Finding("warning", "directory", detail, advice)
    journals = counted(len(folder.sessions()), "journal")
    yield Finding("ok", "directory", f"{counted(len(known), 'session')}, {journals}")


def _disk(folder: Folder) -> Iterator[Finding]:
    kind = machine.file_system(folder.root) or "unknown"
    free = shutil.disk_usage(folder.root).free
    level = "warning" if free < LITTLE_SPACE else "ok"
    advice = (
        "free some space: sessions wait, and then go on unsaved, when there is none" if level != "ok" else ""
    )
    yield Finding(level, "disk", f"{free // 2**20:,} MB free for {folder.root} ({kind})", advice)
    if not os.access(folder.root, os.W_OK):
        read_only = os.statvfs(folder.root).f_flag & os.ST_RDONLY
        why = "its disk is read-only" if read_only else f"the user {getpass.getuser()} may not"
        yield Finding(
            "warning" if read_only else "error", "disk", f"{folder.root} cannot be written: {why}",
            "make it writable: sessions can be read, and nothing new is kept",
        )  # fmt: skip
    if machine.is_shared(folder.root):
        advice = "sessions that another machine had open are read-only here until `dragoman sessions take ID`"
        yield Finding(
            "warning",
            "disk",
            f"{folder.root} is on a file system that other machines may share ({kind})",
            advice,
        )


def _session(path: Path, folder: Folder, session_id: str, known: Numbers | None) -> Findings:
    about = f"session {session_id}"
    try:
        home = folder.of(session_id)
    except UnknownSession:
        advice = f"look at {folder.journals / session_id}, then move it away"
        yield Finding("warning", about, "a folder whose name is not the id of a session", advice)
        return
    try:
        if strange := _not_files(home):  # may be the cause of missing events
            yield from (_not_a_file(about, file) for file in strange)
            return
        known = known or repair.numbers_of(path, session_id)  # may be new
        if known is None:
            yield from _orphan(path, folder, home, about)
        else:
            yield from _journal(path, folder, home, about, known)
    except SchemaTooNew as error:
        yield Finding("error", about, str(error), "upgrade Dragoman")
    except OSError as error:
        where, why = error.filename or home, error.strerror or error
        yield Finding("error", about, f"{where} cannot be read: {why}", _readable(error))


def _not_files(home: Path) -> list[Path]:
    """Entries that have a segment's name and are not files."""
    named = (path for path in home.glob(f"*{segments.SUFFIX}") if segments.NAME.fullmatch(path.name))
    return sorted(path for path in named if not path.is_file())


def _not_a_file(about: str, path: Path) -> Finding:
    if path.is_symlink() and not path.exists():
        advice = "put that file back, or remove the link; then run `dragoman doctor` again"
        return Finding("error", about, f"{path} is a link to {path.readlink()}, which does not exist", advice)
    advice = "remove it, then run `dragoman doctor` again"
    return Finding("error", about, f"{path} is not a file", advice)


def _readable(error: OSError) -> str:
    """Advice for a file that cannot be read."""
    if isinstance(error, PermissionError):
        return f"make it readable for the user {getpass.getuser()}, with `chmod` or `chown`"
    return "see what the system's log says of this disk; restore a back-up if it cannot be repaired"


def _orphan(path: Path, folder: Folder, home: Path, about: str) -> Findings:
    """Findings on a journal that is not in the directory."""
    empty = segments.Reader().end(home).segment is None and not (home / DESCRIPTION).exists()
    if not home.exists() or (
        empty and (locks.holder(home) or time.time() - home.stat().st_mtime < NEW_SECONDS)
    ):
        return  # deleted meanwhile, or being created
    if empty:
        yield _fix(
            "warning", about, "a folder without events or a record", "--fix removes it",
            lambda: repair.remove_empty(folder, home.name),
        )  # fmt: skip
        return
    detail, advice = "its journal is not in the directory", "--fix adds it again"
    if repair.read_description(home) is None:
        detail += f", and {DESCRIPTION} is missing or damaged: its agent, folder and title are not known"
        advice = f'--fix adds it with the agent "{repair.UNKNOWN}": it can be read, exported and deleted'
    yield _fix("error", about, detail, advice, lambda: repair.add_again(path, folder, home.name))


def _journal(path: Path, folder: Folder, home: Path, about: str, known: Numbers) -> Findings:
    found = segments.segments(home)
    if not found and (known.last_seq < known.first_seq or repair.numbers_of(path, home.name) is None):
        return  # no events yet, all removed by retention, or the session is being deleted
    if found and found[0].first_seq > known.first_seq and repair.looks_pruned(home):
        time.sleep(PRUNE_SECONDS)
        known = repair.numbers_of(path, home.name) or known
        if found[0].first_seq > known.first_seq:
            yield _fix(
                "warning", about, "the removal of its old events was interrupted", "--fix completes it",
                lambda: repair.complete_prune(path, folder, home.name),
            )  # fmt: skip
            known = Numbers(found[0].first_seq, known.last_seq, known.epoch)
    lost, end = repair.lost_spans(home, known)
    new = [span for span in lost if span not in repair.accepted_spans(home)]
    if not found:
        detail = f"its journal is missing ({events([(known.first_seq, known.last_seq)])})"
    else:
        detail = f"{events(new)} {are(new)} damaged or missing"
    if new:
        yield _fix(
            "error", about, detail, "restore a back-up, or --fix to go on without them",
            lambda: repair.accept_loss(path, folder, home.name),
            f"{events(new)} {are(new)} accepted as lost",
        )  # fmt: skip
    elif lost:
        yield Finding("ok", about, f"goes on without {events(lost)}, which {are(lost)} lost")
    if end.torn and end.last_seq >= known.last_seq and locks.holder(home) is None:
        detail = f"its last write was cut off: {end.torn} bytes at its end are no whole batch"
        advice = (
            "nothing to do: they are never shown, and the next process that opens it begins a new segment"
        )
        yield Finding("warning", about, detail, advice)
