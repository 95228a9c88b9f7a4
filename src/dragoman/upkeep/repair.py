"""Repairs what `check.py` finds.

Each repair checks its finding again with the store locked (so that no restore runs) and the session's lock held; a
session that a living process owns is skipped.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import msgspec

from dragoman.atomic_file import replace_file
from dragoman.gateway.ports.store import SessionHeld, StoreError
from dragoman.store import directory, locks, segments
from dragoman.store.database import Database
from dragoman.store.failure import explain
from dragoman.store.locks import DESCRIPTION, Folder
from dragoman.wire.timestamps import timestamp

READ_BYTES = 8 * 1024 * 1024
ACCEPTED = "lost.json"
"""File beside a journal: spans of lost events that `doctor --fix` accepted."""
UNKNOWN = "unknown"
"""The agent of a session whose description is lost."""

Span: TypeAlias = tuple[int, int]
"""Numbers of the first and the last of some events."""


class Numbers(msgspec.Struct, frozen=True):
    """The numbers of a journal in the directory."""

    first_seq: int
    last_seq: int
    epoch: int


class Described(msgspec.Struct, frozen=True):
    """The description beside a journal: those columns of the session's row that a repair can use."""

    agent: str
    cwd: str
    workspace: str
    created_at: str
    updated_at: str
    agent_session_id: str | None = None
    additional_directories: str = "[]"
    sandbox: str | None = None
    title: str | None = None
    state: str = "closed"
    forked_from: str | None = None
    extra: str = "{}"
    node: str | None = None
    epoch: int = 0
    last_seq: int = 0


# -- reading


_NUMBERS = "SELECT id, first_seq, last_seq, epoch FROM directory"


def numbers(connection: sqlite3.Connection) -> dict[str, Numbers]:
    """The numbers of all sessions."""
    return {session_id: Numbers(*found) for session_id, *found in connection.execute(_NUMBERS)}


def reader(path: Path) -> sqlite3.Connection:
    """A read-only connection; also for a read-only disk and for a store that is not converted yet."""
    database = Database(path)
    with suppress(StoreError):  # using the connection reports the error
        database.prepare_reading()
    return database.reader()


def numbers_of(path: Path, session_id: str) -> Numbers | None:
    try:
        with closing(reader(path)) as connection:
            found = connection.execute(f"{_NUMBERS} WHERE id = ?", (session_id,)).fetchone()
            return Numbers(*found[1:]) if found is not None else None
    except sqlite3.Error as error:
        raise explain(error, path) from error


def lost_spans(home: Path, known: Numbers) -> tuple[list[Span], segments.End]:
    """Spans of events that are damaged, or missing although in the directory; and the end of the journal."""
    reader = segments.Reader()
    position, spans = 0, list[Span]()
    found = segments.segments(home)
    if found and found[0].first_seq > known.first_seq:
        spans.append((known.first_seq, found[0].first_seq - 1))
    while rows := reader.read(home, position, READ_BYTES):
        spans += [(row.first_seq, row.last_seq) for row in rows if row.damaged]
        position = rows[-1].last_seq
    end = reader.end(home)
    if known.last_seq > end.last_seq:
        spans.append((max(end.last_seq + 1, known.first_seq), known.last_seq))
    return spans, end


def looks_pruned(home: Path) -> bool:
    """Whether the journal ends with an empty segment, as retention leaves it."""
    end = segments.Reader().end(home)
    return end.segment is not None and not end.offset and not end.torn


def accepted_spans(home: Path) -> list[Span]:
    try:
        return msgspec.json.decode((home / ACCEPTED).read_bytes(), type=list[Span])
    except (FileNotFoundError, msgspec.DecodeError):
        return []


def read_description(home: Path) -> Described | None:
    """The content of `session.json`; None if the file is missing or invalid."""
    try:
        found = msgspec.json.decode((home / DESCRIPTION).read_bytes(), type=Described)
        msgspec.json.decode(found.additional_directories, type=list[str])
        msgspec.json.decode(found.extra, type=dict[str, object])
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    return found


# -- repairing


def make_directory(path: Path) -> None:
    """Create an empty directory, to which journals can be added; the lost directory's log is renamed."""
    folder = Folder(path.absolute().parent)
    in_use = folder.use(alone=True)
    try:
        for leftover in (Path(f"{path}-wal"), Path(f"{path}-shm")):
            with suppress(FileNotFoundError):
                leftover.rename(f"{leftover}.{time.strftime('%Y%m%d-%H%M%S')}")
        Database(path).prepare().close()
    finally:
        os.close(in_use)


def remove_empty(folder: Folder, session_id: str) -> None:
    with _owned(folder, session_id):
        if segments.Reader().end(folder.of(session_id)).segment is None:
            shutil.rmtree(folder.of(session_id))


def add_again(path: Path, folder: Folder, session_id: str) -> None:
    """Add a row for a journal from its description; without one, agent and folder stay unknown."""
    home = folder.of(session_id)
    with _owned(folder, session_id) as lock, _writing(path) as connection:
        end = segments.Reader().end(home)
        known = read_description(home) or _unknown(home)
        numbers = {"first_seq": end.first_seq, "last_seq": max(end.last_seq, known.last_seq)}
        epoch = max(known.epoch, end.epoch, lock.read().epoch)
        columns = {
            **msgspec.structs.asdict(known),
            **numbers,
            "id": session_id,
            "owner": None,
            "epoch": epoch,
        }
        try:
            directory.create(connection, columns)
        except StoreError:  # another session has the agent's id by now
            directory.create(connection, {**columns, "agent_session_id": None})
        directory.describe(connection, folder, session_id)


def _unknown(home: Path) -> Described:
    """A description for a session that has none; its times are those of the files."""
    times = [segment.path.stat().st_mtime for segment in segments.segments(home)] or [time.time()]
    first, last = (timestamp(int(moment * 1000)) for moment in (min(times), max(times)))
    return Described(UNKNOWN, "/", "/", first, last, title="Recovered: its agent and folder are not known")


def accept_loss(path: Path, folder: Folder, session_id: str) -> None:
    """Record which events of the journal are lost, also at its beginning and end; numbers continue after them."""
    home = folder.of(session_id)
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _owned(folder, session_id) as lock:
        known = numbers_of(path, session_id)
        if known is None:
            return
        found, end = segments.segments(home), segments.Reader().end(home)
        epoch = max(known.epoch, end.epoch, lock.read().epoch)
        if not found or found[0].first_seq > known.first_seq:
            segments.begin(home, known.first_seq, found[0].epoch if found else epoch)
        if end.last_seq < known.last_seq:
            segments.begin(home, known.last_seq + 1, epoch)
        spans, _ = lost_spans(home, known)
        replace_file(home / ACCEPTED, msgspec.json.encode(spans) + b"\n")


def complete_prune(path: Path, folder: Folder, session_id: str) -> None:
    with _owned(folder, session_id), _writing(path) as connection:
        first_seq = segments.Reader().end(folder.of(session_id)).first_seq
        directory.change(connection, session_id, {"first_seq": first_seq})


@contextmanager
def _owned(folder: Folder, session_id: str) -> Iterator[locks.SessionLock]:
    """Hold the lock of a session; raises `SessionHeld` if a living process owns it."""
    in_use = folder.use()
    try:
        with closing(locks.take(folder.of(session_id))) as lock:
            yield lock
    except SessionHeld as held:
        owner = held.holder.owner
        text = f"left alone, because process {owner.id} on {owner.node} has it open"
        raise SessionHeld(text, held.holder) from held
    finally:
        os.close(in_use)


@contextmanager
def _writing(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        with closing(Database(path).prepare()) as connection:
            yield connection
    except sqlite3.Error as error:
        raise explain(error, path) from error
