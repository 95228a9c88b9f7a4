"""Which gateways have agents, kept beside the data: what a gateway left that was killed together with its watcher is
ended by the next one.

A record is an empty file with the gateway's token as its name. The gateway and its watcher hold a lock on it, over one
descriptor that both have: while either lives, what the token leads to is theirs. A record that is not locked is that of
a dead gateway; whatever carries its token (`marks.py`) was started by that one's agents, since tokens are random. So
neither a pid nor its reuse matters, nor a restart of the machine.

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
    """A descriptor that holds the lock on a new record; -1 if there can be none."""
    path = os.path.join(folder, token + _SUFFIX)
    for _ in range(_ATTEMPTS):
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            return -1
        if _lock(descriptor) and _is_at(descriptor, path):
            return descriptor
        os.close(descriptor)  # between its making and the lock another gateway took it for a dead one's
    return -1


def remove(descriptor: int) -> None:
    """Nothing of this gateway is left."""
    try:
        os.unlink(_path(descriptor))
    except OSError:
        pass  # the other one of gateway and watcher was faster


class Left:
    """The record of a dead gateway, locked while what that one left is ended."""

    def __init__(self, token: str, descriptor: int) -> None:
        self.token = token
        self._descriptor = descriptor

    def settle(self, *, ended: bool) -> None:
        """Let go of it; what could not be ended is left to the next gateway."""
        if ended:
            remove(self._descriptor)
        os.close(self._descriptor)


def left_behind(own: int) -> Iterator[Left]:
    """The records beside our own whose gateways are dead."""
    folder = os.path.dirname(_path(own))
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        token = name.removesuffix(_SUFFIX)
        # Anything shorter would be found in the environment of strangers.
        if token == name or not marks.is_token(token):
            continue
        try:
            descriptor = os.open(os.path.join(folder, name), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue  # gone meanwhile
        if _lock(descriptor):
            yield Left(token, descriptor)
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
