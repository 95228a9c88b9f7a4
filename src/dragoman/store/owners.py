"""Which processes share the store: each holds a lock file that dies with it.

The file is locked for as long as the process lives; the kernel lets go of it whatever ends the process.
Its descriptor is closed on exec and in forked children, so that no agent that outlives us keeps it locked.
Probing takes a shared lock, so that two probes do not take each other for the owner.
"""

from __future__ import annotations

import fcntl
import os
import weakref
from pathlib import Path

from dragoman.gateway.ports.store import StoreUnavailable

_ATTEMPTS = 5


class Owner:
    """This process among those that share the store."""

    def __init__(self, owner_id: str, folder: Path, descriptor: int) -> None:
        self.id = owner_id
        self.lock_path = folder / f"{owner_id}.lock"
        self.socket_path = folder / f"{owner_id}.sock"
        self._descriptor = descriptor
        _held.add(self)

    @classmethod
    def claim(cls, runtime: Path) -> Owner:
        folder = runtime.absolute() / "owners"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        sweep(folder)
        for _ in range(_ATTEMPTS):
            owner_id = os.urandom(8).hex()
            path = folder / f"{owner_id}.lock"
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Between creation and lock, another process's sweep may have taken the file for a dead owner's.
            if path.exists():
                return cls(owner_id, folder, descriptor)
            os.close(descriptor)
        raise StoreUnavailable(f"Lock files in {folder} disappear as soon as they are made.")

    def retire(self) -> None:
        """Remove lock and socket; the others see this process as gone."""
        if self._descriptor < 0:
            return
        self.socket_path.unlink(missing_ok=True)
        self.lock_path.unlink(missing_ok=True)
        self.forget()

    def forget(self) -> None:
        """Close the descriptor alone, as a forked child must."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def is_alive(lock_path: Path) -> bool:
    """Whether the process that made this lock file still runs."""
    try:
        descriptor = _seize(lock_path)
    except FileNotFoundError:
        return False
    if descriptor is None:
        return True
    os.close(descriptor)
    return False


def sweep(folder: Path) -> None:
    """Remove the files of processes that died."""
    for lock in folder.glob("*.lock"):
        try:
            descriptor = _seize(lock)
        except FileNotFoundError:
            continue
        if descriptor is None:
            continue
        # Still locked while it is removed: a process that is just making this file waits, and sees it gone.
        lock.with_suffix(".sock").unlink(missing_ok=True)
        lock.unlink(missing_ok=True)
        os.close(descriptor)


def _seize(lock_path: Path) -> int | None:
    """A descriptor that holds the lock, or None if a living process has it."""
    descriptor = os.open(lock_path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


_held: weakref.WeakSet[Owner] = weakref.WeakSet()


def _forget_all() -> None:
    for owner in list(_held):
        owner.forget()


os.register_at_fork(after_in_child=_forget_all)
