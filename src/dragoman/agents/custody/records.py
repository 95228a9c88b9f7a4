"""Records of gateways that have agents, in files: if a gateway was killed together with its watcher, the next gateway
ends the processes they left.

A record is an empty file named by the gateway's token. The gateway and its watcher share a lock on the file, over one
inherited descriptor: while either lives, the processes with that token are theirs. A record that is not locked belongs
to a dead gateway; all processes with its token (`marks.py`) were started by its agents, since tokens are random. So
neither pid reuse nor a reboot of the machine matters.

Stdlib only and without imports from the package: the watcher loads this file by path.
"""

# ruff: noqa: PTH103, PTH108, PTH115, PTH116, PTH118, PTH120, PTH208 - pathlib is slow to import

from __future__ import annotations

import fcntl
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

if TYPE_CHECKING or __package__:
    from dragoman.agents.custody import marks
else:
    import marks

_SUFFIX = ".custody"
_ATTEMPTS = 5


def make(folder: str, token: str) -> int:
    """Create a record; returns a descriptor that holds its lock, -1 on failure."""
    path = os.path.join(folder, token + _SUFFIX)
    for _ in range(_ATTEMPTS):
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            return -1
        if _lock(descriptor) and _is_at(descriptor, path):
            return descriptor
        os.close(descriptor)  # another gateway took it for a dead one's before it was locked
    return -1


def remove(descriptor: int) -> None:
    """Remove the record of a gateway that has no processes left."""
    try:
        os.unlink(_path(descriptor))
    except OSError:
        pass  # already removed, by the gateway or the watcher


class DeadGateway:
    """The record of a dead gateway, locked while the processes it left are ended."""

    def __init__(self, token: str, descriptor: int) -> None:
        self.token = token
        self._descriptor = descriptor

    def settle(self, *, ended: bool) -> None:
        """Release the record, and remove it if all were `ended`; else the next gateway tries again."""
        if ended:
            remove(self._descriptor)
        os.close(self._descriptor)


def dead_gateways(own: int) -> Iterator[DeadGateway]:
    """The records beside our own whose gateways are dead."""
    folder = os.path.dirname(_path(own))
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        token = name.removesuffix(_SUFFIX)
        # A shorter text could occur in the environment of other processes.
        if token == name or not marks.is_token(token):
            continue
        try:
            descriptor = os.open(os.path.join(folder, name), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue  # gone meanwhile
        if _lock(descriptor):
            yield DeadGateway(token, descriptor)
        else:
            os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False


def _path(descriptor: int) -> str:
    return os.readlink(f"/proc/self/fd/{descriptor}")
