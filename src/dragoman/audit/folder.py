"""The audit's folder: its chains, their segments, and the index that names all chains.

audit/
├── key, key.pub                 signs the chains; the public half, to be kept elsewhere too
├── index.ndjson                 one line for each chain that begins or ends; a chain of hashes itself
└── 20261118-k3vq7mfw/           a chain: what one process recorded
    ├── lock                     locked by that process
    ├── 000000000001.ndjson      segment that begins with record 1
    └── 000000032017.ndjson
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any, BinaryIO

from dragoman.audit import record
from dragoman.audit.keys import Key, fingerprint
from dragoman.wire import timestamps

INDEX = "index.ndjson"
INDEX_LOCK = "index.lock"
LOCK = "lock"
SUFFIX = ".ndjson"
SEGMENT = re.compile("[0-9]{12}")
CHAIN_ID = re.compile(r"\d{8}-[a-z2-9]{8}")
LOCK_PATIENCE, LOCK_PAUSE = 0.5, 0.005
"""Seconds that are waited for a lock, and between attempts; others hold them for less than a millisecond."""
LOCKED = "another process holds a lock of it"
BLOCK = 1 << 16
"""Bytes read first when the last line of a file is searched."""
LONGEST = 128 << 20
"""Bytes of a line: more than any record has. Longer ones would only fill the memory of who reads them."""
TOO_LONG = f"it is longer than {LONGEST >> 20} MB, which no record is"


@dataclass(frozen=True, slots=True)
class End:
    """The last whole line of a file or chain."""

    n: int
    at: str
    hash: str
    offset: int
    """Where the next line goes in the file."""
    torn: int = 0
    """Bytes after the last whole line: an append that was cut off."""


def segment_name(first: int) -> str:
    return f"{first:012d}{SUFFIX}"


def segments(chain: Path) -> list[Path]:
    """The segments of a chain, in their order."""
    return sorted(path for path in chain.glob(f"*{SUFFIX}") if SEGMENT.fullmatch(path.stem))


def chains(folder: Path) -> list[Path]:
    """The folders of all chains, the oldest first."""
    with suppress(FileNotFoundError):
        return sorted(path for path in folder.iterdir() if CHAIN_ID.fullmatch(path.name) and path.is_dir())
    return []


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading; a pipe, a device, a folder or a link in its place raises `OSError` and never waits."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise OSError(errno.ELOOP, "it is a link", str(path)) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return os.fdopen(descriptor, "rb")


def read_lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file with their line feeds; after a part of one that is longer than `LONGEST` it ends."""
    while line := file.readline(LONGEST + 1):
        yield line
        if len(line) > LONGEST:
            return


def read_backwards(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The end of a file, each time longer, and where it begins; raises `Broken` if there is no end to its last line."""
    size = place = file.seek(0, os.SEEK_END)
    block, tail = BLOCK, b""
    while place > 0:
        start = max(0, place - block)
        file.seek(start)
        tail = file.read(place - start) + tail
        place, block = start, min(size, 2 * block)
        yield place, tail
        if len(tail) > LONGEST:
            raise record.Broken(TOO_LONG)


def end_of_file(path: Path) -> End | None:
    """The last whole line of a file; None if there is none. Raises `Broken` if it is no record."""
    with open_regular(path) as file:
        for place, tail in read_backwards(file):
            end = tail.rfind(b"\n")
            if end < 0:
                continue
            start = tail.rfind(b"\n", 0, end)
            if start >= 0 or place == 0:
                line = tail[start + 1 : end]
                head = record.read_head(line)
                return End(head.n, head.at, record.digest(line), place + end + 1, len(tail) - end - 1)
    return None


def end_of_chain(chain: Path) -> End | None:
    """The last whole line of a chain; an empty last segment was begun by a process that ended before it wrote."""
    for path in reversed(segments(chain)):
        if (found := end_of_file(path)) is not None:
            return found
    return None


def is_alive(chain: Path) -> bool:
    """Whether the process that writes the chain lives."""
    with suppress(OSError):
        descriptor = os.open(chain / LOCK, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
    return False


def last_index_line(folder: Path) -> tuple[int, str]:
    """Number and hash of the index's last whole line."""
    with suppress(FileNotFoundError):
        if (end := end_of_file(folder / INDEX)) is not None:
            return end.n, end.hash
    return 0, record.BEGINNING


def read_index(folder: Path, offset: int = 0) -> tuple[list[bytes], int]:
    """The whole lines of the index from `offset` on, and where they end."""
    lines: list[bytes] = []
    with suppress(FileNotFoundError), open_regular(folder / INDEX) as file:
        file.seek(offset)
        for line in read_lines(file):
            if line.endswith(b"\n"):
                lines.append(line[:-1])
                offset += len(line)
    return lines, offset


def add_to_index(
    folder: Path, kind: str, *, key: Key | None = None, unless_since: int | None = None, **facts: Any
) -> bool:
    """Append a line to the index, signed if there is a key; an append that was cut off before is removed.

    Processes take turns. False: one added such a line about the chain after the offset `unless_since`.
    """
    with _turn(folder):
        if unless_since is not None and _is_told(folder, unless_since, kind, facts["chain"]):
            return False
        descriptor = os.open(folder / INDEX, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            end = end_of_file(folder / INDEX)
            n, previous, offset = (
                (end.n, end.hash, end.offset) if end is not None else (0, record.BEGINNING, 0)
            )
            os.ftruncate(descriptor, offset)
            if key is not None:
                facts["key"] = fingerprint(key.public)
            line = record.make_line(n + 1, timestamps.now(), kind, facts, previous)
            if key is not None:
                line = record.signed(line, key.sign(line))
            write_at(descriptor, line + b"\n", offset)
        finally:
            os.close(descriptor)
    return True


def _is_told(folder: Path, since: int, kind: str, chain: str) -> bool:
    told = map(record.read_record, read_index(folder, since)[0])
    return any(facts["kind"] == kind and facts.get("chain") == chain for facts in told)


def write_at(descriptor: int, data: bytes, offset: int) -> None:
    """Write all of `data`, or cut the file at `offset` and raise."""
    try:
        done = os.pwrite(descriptor, data, offset)
        while done < len(data):  # a nearly full disk accepts a part, then fails
            done += os.pwrite(descriptor, data[done:], offset + done)
    except OSError:
        with suppress(OSError):
            os.ftruncate(descriptor, offset)
        raise


@contextmanager
def _turn(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder / INDEX_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def lock(descriptor: int) -> None:
    """Lock a file for this process alone, or raise after a moment: the event loop waits meanwhile."""
    end = monotonic() + LOCK_PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if monotonic() >= end:
                raise BlockingIOError(errno.EAGAIN, LOCKED) from error
            sleep(LOCK_PAUSE)
        else:
            return
