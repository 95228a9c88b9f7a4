"""`fs/read_text_file` and `fs/write_text_file` on this machine's files.

Everything here blocks; `local` runs it in a thread.
"""

from __future__ import annotations

import errno
import os
import secrets
from typing import Annotated, BinaryIO

import msgspec

from dragoman.services.params import decode
from dragoman.services.roots import Place, Roots
from dragoman.wire import message
from dragoman.wire.errors import RpcError, invalid_params

MAX_ANSWER_BYTES = 10 * 1024 * 1024
"""Maximum text in one answer. An agent that reads a database or a log by mistake must not fill our memory and its own;
three such answers fit into one message of the default limit. Larger reads are refused, not truncated: an agent that
does not notice the truncation would write the rest back as the whole file."""

_CHUNK = 256 * 1024

_NOT_REPLACEABLE = frozenset({errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV})
"""Errors of a folder in which a file can be written but not replaced: not ours, or the file is a mount."""

_LineCount = Annotated[int, msgspec.Meta(ge=0)]


class _Read(msgspec.Struct):
    path: str
    line: _LineCount | None = None
    limit: _LineCount | None = None


class _Write(msgspec.Struct):
    path: str
    content: str


class Files:
    """The files of one session."""

    def __init__(self, roots: Roots, writable: Roots | None = None) -> None:
        """`writable` are the roots that may be written to; default: all roots."""
        self._roots = roots
        self._writable = writable or roots

    def read(self, params: bytes) -> bytes:
        """The text from line `line` (the first is 1), at most `limit` lines; "" after the end of the file."""
        wanted = decode(params, _Read)
        with (
            self._roots.place(wanted.path) as place,
            os.fdopen(place.open(os.O_RDONLY), "rb") as file,
        ):
            skip_lines(file, (wanted.line or 1) - 1)
            data = _take_lines(file, wanted.limit)
        if len(data) > MAX_ANSWER_BYTES:
            raise _too_large(wanted.path)
        return msgspec.json.encode({"content": _text(wanted.path, data)})

    def write(self, params: bytes) -> bytes:
        """Write the text to the file; missing folders are created, as editors do."""
        wanted = decode(params, _Write)
        with self._writable.place(wanted.path, create_folders=True) as place:
            _write(place, wanted.content.encode())
        return message.EMPTY


def skip_lines(file: BinaryIO, count: int) -> None:
    """Skip `count` lines without holding them in memory."""
    while count > 0 and (chunk := file.read(_CHUNK)):
        found = chunk.count(b"\n")
        if found >= count:
            file.seek(_after_line(chunk, count) - len(chunk), os.SEEK_CUR)
            return
        count -= found


def _take_lines(file: BinaryIO, limit: int | None) -> bytes:
    """The next `limit` lines, cut at one byte more than an answer may have."""
    taken = bytearray()
    room = MAX_ANSWER_BYTES + 1
    while limit != 0 and (chunk := file.read(min(_CHUNK, room - len(taken)))):
        if limit is not None:
            found = chunk.count(b"\n")
            if found >= limit:
                chunk = chunk[: _after_line(chunk, limit)]
            limit -= min(found, limit)
        taken += chunk
    return bytes(taken)


def _after_line(chunk: bytes, count: int) -> int:
    """The position after line feed number `count`, which must be in the chunk."""
    position = 0
    for _ in range(count):
        position = chunk.index(b"\n", position) + 1
    return position


def _text(path: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise invalid_params(f"{path!r} is not UTF-8 text", "encoding", path=path) from error


def _too_large(path: str) -> RpcError:
    return invalid_params(
        f"{path!r} has more than {MAX_ANSWER_BYTES} bytes to read; ask for a part with line and limit",
        "too_large",
        path=path,
        maxBytes=MAX_ANSWER_BYTES,
    )


def _write(place: Place, content: bytes) -> None:
    try:
        # Opened even if it will be replaced: replacing checks only the folder's permissions.
        existing = place.open(os.O_WRONLY)
    except FileNotFoundError:
        if place.fixed:
            raise
        _replace(place, content, None)
        return
    with os.fdopen(existing, "wb") as file:
        status = os.fstat(existing)
        if not place.fixed and _replaceable(existing, status):
            try:
                _replace(place, content, status.st_mode & 0o777)
                return
            except OSError as error:
                if error.errno not in _NOT_REPLACEABLE:
                    raise
        file.truncate(0)
        file.write(content)


def _replaceable(descriptor: int, status: os.stat_result) -> bool:
    """Whether replacing the file by a new one loses nothing: hard links, user and group, access lists."""
    ours = status.st_uid == os.geteuid() and status.st_gid == os.getegid()
    return ours and status.st_nlink == 1 and not _has_attributes(descriptor)


def _has_attributes(descriptor: int) -> bool:
    if not hasattr(os, "listxattr"):
        return False
    try:
        names = os.listxattr(descriptor)
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        return False
    return any(name != "security.selinux" for name in names)  # a new file gets that one anyway


def _replace(place: Place, content: bytes, mode: int | None) -> None:
    """Write beside the file, then rename over it, so that no reader sees half of it."""
    beside = f".dragoman-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(beside, flags, 0o666, dir_fd=place.folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if mode is not None:
                os.fchmod(descriptor, mode)
            os.fsync(descriptor)  # else the new name may have no content after a power failure
        os.rename(beside, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
    except OSError:
        os.unlink(beside, dir_fd=place.folder)
        raise
