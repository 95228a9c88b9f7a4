"""Linux's inotify: the kernel queues an event for each change in a watched folder before the change's call returns.

Python has no interface to it, so libc is called. The queue is never read in the event loop, which only asks whether it
is empty.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
import sys
import termios
from collections.abc import Iterator

MODIFY, ATTRIB, CLOSE_WRITE = 0x2, 0x4, 0x8
MOVED_FROM, MOVED_TO, CREATE, DELETE, DELETE_SELF, MOVE_SELF = 0x40, 0x80, 0x100, 0x200, 0x400, 0x800
UNMOUNT, OVERFLOW, IGNORED, IS_FOLDER = 0x2000, 0x4000, 0x8000, 0x40000000
ONLY_FOLDER, DONT_FOLLOW, EXCLUDE_UNLINKED = 0x01000000, 0x02000000, 0x04000000
CHANGES = MODIFY | ATTRIB | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE | DELETE_SELF | MOVE_SELF
_HEAD = struct.Struct("iIII")
_READ_BYTES = 1 << 16

LOCAL_DISKS = frozenset(
    {
        0xEF53,  # ext2, ext3, ext4
        0x58465342,  # xfs
        0x9123683E,  # btrfs
        0xF2F52010,  # f2fs
        0xCA451A4E,  # bcachefs
        0x2FC12FC1,  # zfs
        0x01021994,  # tmpfs
        0x858458F6,  # ramfs
        0x794C7630,  # overlayfs
    }
)
"""File systems, by the number in `statfs`, that only this machine changes; others change without an event."""


class Inotify:
    """One queue of events; `close` it in the end. Raises `OSError`, also where there is no inotify."""

    def __init__(self) -> None:
        if sys.platform != "linux":
            raise OSError("inotify is a part of Linux")
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = _checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def add(self, folder: bytes, events: int) -> int:
        """Watch a folder, not the folders in it; returns the number by which events name it."""
        mask = events | ONLY_FOLDER | DONT_FOLLOW | EXCLUDE_UNLINKED
        return _checked(self._libc.inotify_add_watch(self._descriptor, folder, mask))

    def on_local_disk(self, folder: bytes) -> bool:
        answer = ctypes.create_string_buffer(
            512
        )  # larger than any `struct statfs`, which begins with the type
        _checked(self._libc.statfs(folder, answer))
        return int.from_bytes(answer.raw[: ctypes.sizeof(ctypes.c_long)], sys.byteorder) in LOCAL_DISKS

    def pending(self) -> bool:
        return fcntl.ioctl(self._descriptor, termios.FIONREAD, b"\0\0\0\0") != b"\0\0\0\0"

    def events(self) -> Iterator[tuple[int, int, bytes]]:
        """Take all events out of the queue: the folder's number, mask, and the name in the folder."""
        while True:
            try:
                data = os.read(self._descriptor, _READ_BYTES)
            except BlockingIOError:
                return
            place = 0
            while place < len(data):
                folder, mask, _, length = _HEAD.unpack_from(data, place)
                place += _HEAD.size
                yield folder, mask, data[place : place + length].rstrip(b"\0")
                place += length

    def close(self) -> None:
        os.close(self._descriptor)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
