"""The format of a journal file: batches of events, each below a line that describes it. No IO.

    #dragoman journal 1 dgm_k3vq…                            the first line of a file: format version and session
    #17 3 412 2 2026-11-17T03:31:02.123Z 9f3c2a11            first number, count, length, epoch, time, checksum
    U{"jsonrpc":"2.0","method":"session/update",…}           one event per line, three in this batch

The length is that of the event lines with their line feeds. The checksum (CRC-32) covers the event lines, then the
description up to the checksum. A count such as `3+5120` means that 5120 bytes of the same append follow this batch: if
the file ends before them, the whole append is ignored. A reader finds batches by these lengths, never by a `#`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias
from zlib import crc32

from msgspec import Struct

from dragoman.gateway.ports.store import Row
from dragoman.wire.timestamps import milliseconds

VERSION = 1
LONGEST_HEAD = 160
"""Maximum bytes of a description: five numbers of up to twenty digits, a time, a checksum."""

_MAGIC = b"#dragoman journal "
_HEAD = re.compile(rb"#(\d{1,20}) (\d{1,20})(?:\+(\d{1,20}))? (\d{1,20}) (\d{1,20}) (\S{1,30}) [0-9a-f]{8}\n")


def file_head(session_id: str) -> bytes:
    return b"%b%d %b\n" % (_MAGIC, VERSION, session_id.encode())


def file_version(start: bytes) -> int | None:
    """The format version in the first bytes of a file; None if they are no journal's first line."""
    line, end, _ = start.partition(b"\n")
    version = line[len(_MAGIC) :].split(b" ")[0]
    return int(version) if end and line.startswith(_MAGIC) and version.isdigit() else None


class Batch(Struct, frozen=True, gc=False):
    """A batch as its description declares it."""

    size: int
    """Bytes of the batch, including its description."""
    count: int
    more: int
    """Bytes of the same append after this batch."""
    row: Row | None
    """The events; None if they are incomplete or do not match the checksum."""


Read: TypeAlias = Callable[[int, int], bytes]
"""Reads a file: (offset, length) to bytes, fewer at the end of the file."""


def read_batch(read: Read, offset: int, first_seq: int) -> Batch | None:
    """The batch at `offset` that begins with event `first_seq`; None if none is described there."""
    match = _HEAD.match(read(offset, LONGEST_HEAD))
    if match is None or int(match[1]) != first_seq:
        return None
    count, length = int(match[2]), int(match[4])
    if not 0 < count <= length:
        return None
    head, lines = match[0], read(offset + match.end(), length)
    whole = len(lines) == length and b"%08x\n" % crc32(head[:-9], crc32(lines)) == head[-9:]
    row = None
    if whole and lines[-1:] == b"\n" and lines.count(b"\n") == count:  # may differ in a forged batch
        row = Row(
            first_seq, milliseconds(match[6].decode(errors="replace")), count, lines[:-1], int(match[5])
        )
    return Batch(len(head) + length, count, int(match[3] or 0), row)


def find_batch(data: bytes, first_seq: int) -> tuple[int, int] | None:
    """Offset and first event of the next valid batch that begins with event `first_seq` or a later one."""
    for match in _HEAD.finditer(data):
        seq = int(match[1])
        if seq >= first_seq and (match.start() == 0 or data[match.start() - 1] == 10):
            batch = read_batch(lambda offset, length: data[offset : offset + length], match.start(), seq)
            if batch is not None and batch.row is not None:
                return match.start(), seq
    return None
