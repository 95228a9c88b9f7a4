"""Unpacks an archive of a stranger into a new folder.

Only folders and regular files are made, by name below the folder, each once; links, devices, FIFOs and sparse files
are refused, not skipped: a program without a part of its archive fails in worse ways. Of the mode only "executable"
is kept, so that nothing is setuid. What is written is counted, never what an archive says of itself.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from dragoman.registry.archive_names import BadArchive, Names, split

CHUNK = 1024 * 1024
LARGEST_HEADER = 1024 * 1024
"""Bytes that the tar reader takes at once; only an extended header has more, and it is held in memory."""
_MAGIC = ((b"\x1f\x8b", "gz"), (b"\xfd7zXZ\x00", "xz"), (b"BZh", "bz2"), (b"PK\x03\x04", "zip"))
_PROGRAM = (
    b"\x7fELF",
    b"#!",
    b"MZ",
    *(bytes.fromhex(text) for text in ("cffaedfe", "cefaedfe", "feedface", "feedfacf", "cafebabe")),
)
_SUFFIXES = {
    ".tar.gz": "gz",
    ".tgz": "gz",
    ".tar.xz": "xz",
    ".txz": "xz",
    ".tar.bz2": "bz2",
    ".tbz2": "bz2",
    ".tar": "tar",
    ".zip": "zip",
}
INSTALLERS = (".dmg", ".pkg", ".deb", ".rpm", ".msi", ".appimage")
_OPEN: dict[str, Any] = {"gz": gzip.open, "xz": lzma.open, "bz2": bz2.open}
_BROKEN = (
    *(tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, lzma.LZMAError),
    *(EOFError, struct.error, NotImplementedError, UnicodeDecodeError, OverflowError),
)


@dataclass(frozen=True, slots=True)
class Limits:
    entries: int = 100_000
    bytes: int = 4 * 1024 * 1024 * 1024
    ratio: int = 100
    """Times its size that an archive may grow to; up to `free` bytes it may grow to any size."""
    free: int = 64 * 1024 * 1024


class _Budget:
    """Counts what an archive becomes."""

    def __init__(self, limits: Limits, size: int) -> None:
        self._limits = limits
        self._most = min(limits.bytes, max(limits.free, size * limits.ratio))
        self._entries = self._bytes = 0

    def entry(self) -> None:
        self._entries += 1
        if self._entries > self._limits.entries:
            raise BadArchive(f"the archive has more than {self._limits.entries} entries: it is not unpacked")

    def spend(self, count: int) -> None:
        self._bytes += count
        if self._bytes > self._most:
            raise BadArchive(f"the archive grows to more than {self._most} bytes: it is not unpacked")


def unpack(archive: IO[bytes], name: str, folder: Path, program: str, limits: Limits | None = None) -> Path:
    """Unpack into `folder`, which is there and empty; returns the path of `program` in it.

    `name` is that of the archive, whose ending says what it is. Without an ending that is known its content does; a
    file that is no archive is the program itself.
    """
    wanted = folder.joinpath(*_program_parts(program))
    archive.seek(0)
    head = archive.read(512)
    archive.seek(0)
    kind = _kind(name, head)
    budget = _Budget(limits or Limits(), os.fstat(archive.fileno()).st_size)
    try:
        if kind == "raw":
            wanted.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            _write(archive, wanted, True, budget)
        elif kind == "zip":
            _unzip(archive, folder, budget, limits or Limits())
        else:
            _untar(archive, kind, folder, budget)
    except _BROKEN as error:
        raise BadArchive(f"the archive is damaged: {error}"[:300]) from error
    except OSError as error:
        if error.errno is None:  # from the decompressor, not from the disk
            raise BadArchive(f"the archive is damaged: {error}"[:300]) from error
        raise
    if not wanted.is_file():
        raise BadArchive(f"the archive has no {program[:100]!r}, which the registry says to run")
    wanted.chmod(0o755)
    return wanted


def _program_parts(program: str) -> tuple[str, ...]:
    parts = split(program)
    if not parts:
        raise BadArchive(f"{program[:100]!r} is not the name of a program")
    return parts


def _kind(name: str, head: bytes) -> str:
    lower = name.lower()
    if lower.endswith(INSTALLERS):
        raise BadArchive(
            f"{name[-100:]} is an installer for a system, which is not run: only archives are unpacked"
        )
    said = next((kind for suffix, kind in _SUFFIXES.items() if lower.endswith(suffix)), None)
    found = next((kind for magic, kind in _MAGIC if head.startswith(magic)), None)
    if found is None:
        found = "tar" if head[257:262] == b"ustar" else "raw" if head.startswith(_PROGRAM) else None
    if found is None or (said is not None and said != found):
        what = f"no {said} archive" if said else "neither an archive nor a program"
        raise BadArchive(f"{name[-100:] or 'the download'} is {what}: it begins with {head[:16]!r}")
    return found


def _untar(archive: IO[bytes], kind: str, folder: Path, budget: _Budget) -> None:
    """Decompress into a file first: the tar reader seeks, and must not hold in memory what a header announces."""
    with tempfile.TemporaryFile(dir=folder) as plain:
        source = _OPEN[kind](archive) if kind in _OPEN else archive
        room = _Budget(budget._limits, os.fstat(archive.fileno()).st_size)
        while chunk := source.read(CHUNK):
            room.spend(len(chunk))
            plain.write(chunk)
        plain.seek(0)
        _untar_plain(plain, folder, budget)


def _untar_plain(plain: IO[bytes], folder: Path, budget: _Budget) -> None:
    names = Names()
    careful: Any = _Careful(plain)
    with tarfile.TarFile(fileobj=careful, mode="r", errorlevel=2, encoding="utf-8") as tar:
        while (member := tar.next()) is not None:
            tar.members.clear()  # type: ignore[attr-defined]  # it would keep every header
            budget.entry()
            if member.isdir():
                _make(folder, names.folder(member.name))
            elif member.isreg() and not member.issparse() and member.size >= 0:
                parts = names.file(member.name)
                _make(folder, parts[:-1])
                content = tar.extractfile(member)
                assert content is not None
                _write(content, folder.joinpath(*parts), bool(member.mode & 0o111), budget, member.size)
            else:
                raise BadArchive(
                    f"the archive has {_what(member)}: {member.name[:100]!r}; it is not unpacked"
                )


def _what(member: tarfile.TarInfo) -> str:
    kinds = {
        tarfile.SYMTYPE: "a link",
        tarfile.LNKTYPE: "a link",
        tarfile.CHRTYPE: "a device",
        tarfile.BLKTYPE: "a device",
        tarfile.FIFOTYPE: "a FIFO",
        tarfile.GNUTYPE_SPARSE: "a sparse file",
    }
    return kinds.get(member.type, "a sparse file" if member.issparse() else "an entry of an unknown kind")


class _Careful:
    """A file whose reader may not take more than a header at once."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= LARGEST_HEADER:
            raise BadArchive("the archive has a header of more than 1 MB: it is not unpacked")
        return self._file.read(size)

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _unzip(archive: IO[bytes], folder: Path, budget: _Budget, limits: Limits) -> None:
    _check_directory(archive, limits)
    names = Names()
    with zipfile.ZipFile(archive) as packed:
        for member in packed.infolist():
            budget.entry()
            mode = member.external_attr >> 16 if member.create_system == 3 else 0
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                what = "a link" if stat.S_ISLNK(mode) else "a device or a FIFO"
                raise BadArchive(f"the archive has {what}: {member.filename[:100]!r}; it is not unpacked")
            if member.flag_bits & 0x1:
                raise BadArchive("the archive is encrypted: it is not unpacked")
            raw = member.orig_filename  # `filename` is cut at a NUL
            if member.is_dir():
                _make(folder, names.folder(raw))
                continue
            parts = names.file(raw)
            _make(folder, parts[:-1])
            with packed.open(member) as content:
                _write(content, folder.joinpath(*parts), bool(mode & 0o111), budget)


def _check_directory(archive: IO[bytes], limits: Limits) -> None:
    """The list of entries is read into memory as a whole, so its size is looked at before."""
    size = archive.seek(0, os.SEEK_END)
    archive.seek(max(0, size - 66_000))
    tail = archive.read()
    archive.seek(0)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) < at + 22:
        raise BadArchive("the archive is damaged: it has no list of its entries")
    entries, length = (
        struct.unpack("<H", tail[at + 10 : at + 12])[0],
        struct.unpack("<I", tail[at + 12 : at + 16])[0],
    )
    if entries == 0xFFFF or entries > limits.entries or length > 64 * 1024 * 1024:
        raise BadArchive(
            f"the archive has more than {min(limits.entries, 0xFFFF)} entries: it is not unpacked"
        )


def _make(folder: Path, parts: tuple[str, ...]) -> None:
    folder.joinpath(*parts).mkdir(mode=0o755, parents=True, exist_ok=True)


def _write(
    content: IO[bytes], file: Path, executable: bool, budget: _Budget, size: int | None = None
) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(file, flags, 0o755 if executable else 0o644)
    written = 0
    with os.fdopen(descriptor, "wb") as out:
        while chunk := content.read(CHUNK):
            budget.spend(len(chunk))
            out.write(chunk)
            written += len(chunk)
    if size is not None and written != size:
        raise BadArchive(f"the archive is damaged: it ends within {file.name[:100]!r}")
