"""Which processes share the store: each holds a lock file that dies with it.

The file lies beside the data, so that every process that sees the data sees it too: a runtime folder goes with the last
logout, and containers that share a home have one each. It is locked for as long as the process lives; the kernel lets go
of it whatever ends the process. Its descriptor is closed on exec and in forked children, so that no agent that outlives
us keeps it locked. Probing takes a shared lock, so that two probes do not take each other for the owner.

    locked               alive
    there, not locked    dead
    gone                 proves nothing: dead only if the machine was started since, or if the process would be seen here
                         and is not; files are removed only together with what the table of owners knows of them

The socket stays in the runtime folder. An owner whose socket cannot be reached is alive all the same.
"""

from __future__ import annotations

import fcntl
import os
import platform
import weakref
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from dragoman.gateway.ports.store import StoreUnavailable

_ATTEMPTS = 5
_MACHINE_ID = Path("/etc/machine-id")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Owner:
    """This process among those that share the store."""

    def __init__(self, owner_id: str, locks: Path, sockets: Path, descriptor: int) -> None:
        self.id = owner_id
        self.lock_path = lock_of(locks, owner_id)
        self.socket_path = sockets / f"{owner_id}.sock"
        self.place = here()
        self._descriptor = descriptor
        _held.add(self)

    @classmethod
    def claim(cls, locks: Path, runtime: Path) -> Owner:
        sockets = runtime.absolute() / "owners"
        sockets.mkdir(parents=True, exist_ok=True, mode=0o700)
        for _ in range(_ATTEMPTS):
            owner_id = os.urandom(8).hex()
            path = lock_of(locks, owner_id)
            try:
                locks.mkdir(parents=True, exist_ok=True, mode=0o700)
                descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
            except FileNotFoundError:  # the last process that ended has just removed the folder
                continue
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Between creation and lock, another process's sweep may have taken the file for a dead owner's.
            if path.exists():
                return cls(owner_id, locks, sockets, descriptor)
            os.close(descriptor)
        raise StoreUnavailable(f"Lock files in {locks} disappear as soon as they are made.")

    def retire(self, *, unregistered: bool) -> None:
        """Let go of the lock. Its file stays while the table of owners has us: unlocked, it says that we ended."""
        if self._descriptor < 0:
            return
        self.socket_path.unlink(missing_ok=True)
        if unregistered:
            self.lock_path.unlink(missing_ok=True)
        self.forget()
        with suppress(OSError):  # others have their locks there
            self.lock_path.parent.rmdir()

    def forget(self) -> None:
        """Close the descriptor alone, as a forked child must."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def lock_of(locks: Path, owner_id: str) -> Path:
    return locks / f"{owner_id}.lock"


def is_alive(lock_path: Path, place: str, pid: int) -> bool:
    """Whether the process that made this lock file, at that `place`, may still run."""
    try:
        descriptor = _seize(lock_path)
    except FileNotFoundError:
        return not _is_known_dead(place, pid)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False


def unlocked(locks: Path) -> set[str]:
    """The ids of lock files that no process holds."""
    found = set()
    for path in locks.glob("*.lock"):
        try:
            descriptor = _seize(path)
        except FileNotFoundError:
            continue
        if descriptor is not None:
            os.close(descriptor)
            found.add(path.stem)
    return found


def sweep(locks: Path, runtime: Path, owner_ids: Iterable[str]) -> None:
    """Remove the files of dead processes that the table of owners has forgotten."""
    for owner_id in owner_ids:
        try:
            descriptor = _seize(lock_of(locks, owner_id))
        except FileNotFoundError:
            continue
        if descriptor is None:
            continue
        # Still locked while it is removed: a process that is just making this file waits, and sees it gone.
        (runtime.absolute() / "owners" / f"{owner_id}.sock").unlink(missing_ok=True)
        lock_of(locks, owner_id).unlink(missing_ok=True)
        os.close(descriptor)


def here() -> str:
    """Where process ids mean what they mean to us, and when we began: boot, pid namespace, start, machine.

    Where the system does not tell the first three, the machine alone.
    """
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
        return f"{_BOOT_ID.read_text().strip()} {namespace} {_started(os.getpid())} {_machine()}"
    except OSError:
        return f"machine {platform.node()}"


def _machine() -> str:
    """The same after a reboot. Images may have an id in common, and machines a name: both must be the same."""
    try:
        known = _MACHINE_ID.read_text().strip()
    except OSError:
        known = ""
    return f"{known or '-'}@{platform.node()}".replace(" ", "_")


def _is_known_dead(place: str, pid: int) -> bool:
    """Without its lock file: another boot of this machine, or a process that we would see and do not.

    Another boot elsewhere proves nothing: a machine that shares our files over the network has its own.
    """
    theirs, mine = place.split(" "), here().split(" ")
    if len(mine) == 4 and len(theirs) == 3:  # of a version that did not say which machine
        theirs.append(mine[3])
    if len(theirs) != len(mine):
        return not place  # of a version that had its locks elsewhere
    if len(mine) == 4:
        if theirs[0] != mine[0]:
            return theirs[3] == mine[3]
        return theirs[1] == mine[1] and _started(pid) != theirs[2]
    if theirs != mine:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False


def _started(pid: int) -> str | None:
    """When a process began, in ticks since boot; None if it does not run."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat[stat.rindex(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else fields[19].decode()


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
