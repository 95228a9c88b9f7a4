"""`dragoman backup`: the state folder in one file, written while gateways run, verified when read.

The file is a tar archive. The directory in it is a consistent copy made by SQLite; journals are append-only and are
copied after that, up to their last whole batch, so that every session of the directory is there with at least the
events that it had then. The directory is added after the journals, without the sessions that were deleted before their
journals were copied. A link to a file is stored as that file. The last member, `manifest.json`, has the size and the
SHA-256 of every other.
"""

from __future__ import annotations

import hashlib
import io
import os
import sqlite3
import tarfile
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Any, Protocol, TypeAlias, cast

import msgspec

from dragoman.gateway.ports.store import SchemaTooNew, StoreCorrupt, StoreError, StoreUnavailable
from dragoman.search.index import FILES as SEARCH_FILES
from dragoman.search.index import LOCK as SEARCH_LOCK
from dragoman.store import locks, segments
from dragoman.store.database import READABLE, version
from dragoman.store.failure import explain
from dragoman.store.locks import GATEWAYS, Folder

Say: TypeAlias = Callable[[str], None]

FORMAT = 1
MANIFEST = "manifest.json"
DATABASE = "dragoman.db"
BEFORE = "before-"
"""Prefix of the folder that holds the entries a restore replaced."""
_LEFT_OUT = frozenset(
    {"run", "cache", "agents", "owners", "custody", GATEWAYS, locks.NAME, *SEARCH_FILES, SEARCH_LOCK}
)
"""Entries that belong to running processes, or can be created again."""
_CHUNK = 1024 * 1024
_GZIP = b"\x1f\x8b"


class Member(msgspec.Struct, frozen=True):
    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    format: int
    created: str
    sessions: int
    files: dict[str, Member]


def is_left_out(name: str) -> bool:
    """Whether an entry of the state folder is neither backed up nor replaced by a restore."""
    return name in _LEFT_OUT or name.startswith((".", BEFORE))


def back_up(state: Path, target: Path, say: Say) -> Manifest:
    """Write the archive under another name, read it back, then rename it: a file named `target` is complete."""
    database = state / DATABASE
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        if target.exists():
            raise StoreUnavailable(f"{target} exists already; choose another name, or remove it first.")
        _check_source(state)
        descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                _write(state, file, target, say)
                file.flush()
                os.fsync(file.fileno())
            manifest = verify(draft, say)
            draft.rename(target)
        finally:
            with suppress(OSError):
                draft.unlink()
    except sqlite3.Error as error:
        raise explain(error, database) from error
    except OSError as error:
        raise _unreadable_or_full(error, state, target) from error
    except StoreCorrupt as error:
        raise StoreCorrupt(f"{target} could not be read back as it was written, and was removed.") from error
    return manifest


def _check_source(state: Path) -> None:
    database = state / DATABASE
    if not database.exists():
        if any(Folder(state).sessions()):
            raise StoreUnavailable(
                f"{database} is missing although there are journals: run `dragoman doctor --fix` first."
            )
        raise StoreUnavailable(f"There are no sessions to back up: {database} does not exist.")
    with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        if version(connection) < READABLE:
            raise StoreUnavailable(
                f"{database} is of an older Dragoman and not converted yet: start it once."
            )


def _unreadable_or_full(error: OSError, state: Path, target: Path) -> StoreError:
    why = error.strerror or str(error)
    if error.filename is not None and Path(str(error.filename)).is_relative_to(state):
        return StoreUnavailable(f"{error.filename} cannot be read: {why}. There is no back-up.")
    return StoreUnavailable(f"{target} cannot be written: {why}. There is no back-up.")


def _write(state: Path, file: IO[bytes], target: Path, say: Say) -> None:
    packed = "w:gz" if target.suffix in (".gz", ".tgz") else "w"
    files: dict[str, Member] = {}
    folders = set(Folder(state).sessions())  # before the directory is copied, so that none is missed
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / DATABASE
        with closing(sqlite3.connect(state / DATABASE)) as source, closing(sqlite3.connect(copy)) as other:
            source.backup(other)
            known = _ids(other)
        with tarfile.open(fileobj=file, mode=cast(Any, packed)) as archive:
            sessions, whole = sorted(known | folders), set()
            for number, session_id in enumerate(sessions, 1):
                say(f"sessions: {number} of {len(sessions)}")
                journal = _journal(Folder(state).journals / session_id)
                added = [_add(archive, files, name, path, size) for name, path, size in journal]
                if added and all(added):
                    whole.add(session_id)
            for name, path in _others(state, os.fstat(file.fileno())):
                _add(archive, files, name, path)
            deleted = _deleted(state, known) - whole
            with closing(sqlite3.connect(copy)) as other, other:
                other.executemany("DELETE FROM directory WHERE id = ?", [(gone,) for gone in deleted])
            _add(archive, files, DATABASE, copy)
            created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            manifest = msgspec.json.encode(Manifest(FORMAT, created, len(sessions) - len(deleted), files))
            member = tarfile.TarInfo(MANIFEST)
            member.size, member.mode = len(manifest), 0o600
            archive.addfile(member, io.BytesIO(manifest))


def _ids(connection: sqlite3.Connection) -> set[str]:
    return {row[0] for row in connection.execute("SELECT id FROM directory")}


def _deleted(state: Path, known: set[str]) -> set[str]:
    """Sessions that were deleted since the directory was copied.

    A deletion hides the folder, then removes the row, then the hidden folder; this function checks in that order.
    """
    hidden = known & set(Folder(state).hidden())
    with closing(sqlite3.connect(state / DATABASE)) as source:
        return hidden | (known - _ids(source))


def _journal(home: Path) -> list[tuple[str, Path, int | None]]:
    """The files of one session, each with the number of bytes to copy; None: all.

    The owner may begin a segment at any moment. Files are listed before the end is determined: segments begun later
    are not in the list, and the segment with the end is the last in it.
    """
    while True:
        listed = sorted(home.glob("*"))
        sizes: dict[Path, int] = {}
        with suppress(SchemaTooNew):  # of a newer version: copied unchanged
            end = segments.Reader().end(home)
            if end.segment is not None:
                if end.segment.path not in listed:
                    continue  # begun since the files were listed
                sizes[end.segment.path] = end.offset
        return [
            (f"journal/{home.name}/{path.name}", path, sizes.get(path))
            for path in listed
            if not path.name.startswith(".") and path.name not in _LEFT_OUT and path.is_file()
        ]


def _others(state: Path, archive: os.stat_result) -> Iterator[tuple[str, Path]]:
    for top in sorted(state.iterdir()):
        if is_left_out(top.name) or top.name.startswith(DATABASE) or top.name == "journal":
            continue
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            if path.is_file() and path.name not in _LEFT_OUT and not os.path.samestat(path.stat(), archive):
                yield str(path.relative_to(state)), path


def _add(
    archive: tarfile.TarFile, files: dict[str, Member], name: str, path: Path, size: int | None = None
) -> bool:
    """Add a file with its present size, or `size` bytes of it; returns False if the file is gone."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return False
    with file:
        known = os.fstat(file.fileno())
        member = tarfile.TarInfo(name)
        member.size = known.st_size if size is None else min(size, known.st_size)
        member.mtime, member.mode = int(known.st_mtime), 0o600
        reader = _Hashing(file, member.size)
        archive.addfile(member, cast(IO[bytes], reader))
        files[name] = Member(member.size, reader.digest.hexdigest())
    return True


class _Hashing:
    """Reads a number of bytes and hashes them."""

    def __init__(self, file: IO[bytes], left: int) -> None:
        self._file = file
        self._left = left
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        wanted = self._left if size < 0 else min(size, self._left)
        data = self._file.read(wanted)
        self._left -= len(data)
        self.digest.update(data)
        return data


# -- reading


class Output(Protocol):
    """The target of a member. Raises `StoreError`, so that its errors are not taken for damage to the archive."""

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


Take: TypeAlias = Callable[[str], Output | None]
"""The output for a member, by its name."""


def verify(archive: Path, say: Say) -> Manifest:
    """Read a whole archive; raises `StoreCorrupt` if it differs from what was written."""
    return read(archive, lambda name: None, say)


def read(archive: Path, take: Take, say: Say) -> Manifest:
    """Check the hash of every member, and write each to the output that `take` returns."""
    found: dict[str, Member] = {}
    manifest: Manifest | None = None
    try:
        with archive.open("rb") as file, tarfile.open(fileobj=file, mode=_mode(file)) as source:
            for member in source:
                content = source.extractfile(member) if member.isreg() else None
                if content is None:
                    raise StoreCorrupt(
                        f"{archive} has {member.name!r}, which is no file; it is not a back-up."
                    )
                if member.name == MANIFEST:
                    manifest = msgspec.json.decode(content.read(), type=Manifest)
                    continue
                found[member.name] = _copy(content, member.name, take)
                say(f"reading: {len(found)} files")
            while cast(IO[bytes], source.fileobj).read(_CHUNK):
                pass  # reads gzip's checksum after the last member
    except OSError as error:
        raise StoreCorrupt(f"{archive} cannot be read: {error.strerror or error}.") from error
    except (tarfile.TarError, EOFError, zlib.error, ValueError, msgspec.DecodeError) as error:
        raise StoreCorrupt(f"{archive} cannot be read as a back-up: {error}.") from error
    _check(archive, manifest, found)
    assert manifest is not None
    return manifest


def _mode(file: IO[bytes]) -> Any:
    packed = file.read(len(_GZIP)) == _GZIP
    file.seek(0)
    return "r:gz" if packed else "r:"


def _check(archive: Path, manifest: Manifest | None, found: dict[str, Member]) -> None:
    if manifest is None:
        raise StoreCorrupt(f"{archive} is not a whole back-up of Dragoman: it has no {MANIFEST}.")
    if manifest.format > FORMAT:
        raise SchemaTooNew(f"{archive} was written by a newer Dragoman. Upgrade Dragoman to restore it.")
    if manifest.files != found:
        names = sorted(
            name
            for name in manifest.files.keys() | found.keys()
            if manifest.files.get(name) != found.get(name)
        )
        raise StoreCorrupt(f"{archive} is damaged: {', '.join(names[:3])} differ from what was backed up.")


def _copy(content: IO[bytes], name: str, take: Take) -> Member:
    digest, size = hashlib.sha256(), 0
    out = take(name)
    try:
        while chunk := content.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
            if out is not None:
                out.write(chunk)
    finally:
        if out is not None:
            out.close()
    return Member(size, digest.hexdigest())
