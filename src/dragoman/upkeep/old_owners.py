"""Checks whether the owner of a session in a store of version 1 or 2 still runs; each process had a lock file.

locked               alive
there, not locked    dead
gone                 proves nothing: dead only if the machine was started since, or if the process would be seen here
                     and is not
"""

from __future__ import annotations

import fcntl
import os
import platform
from pathlib import Path

from dragoman import machine


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


def here() -> str:
    """The identity of this process beyond its pid: boot, pid namespace, start time and machine.

    Where the system does not provide the first three, the machine alone.
    """
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
        return f"{machine.boot_id()} {namespace} {_started(os.getpid())} {machine.identity()}"
    except OSError:
        return f"machine {platform.node()}"


def _is_known_dead(place: str, pid: int) -> bool:
    """Whether a process without a lock file is dead: the machine was rebooted, or a process that we would see is gone.

    A different boot on another machine proves nothing: that machine may share our files over the network.
    """
    theirs, mine = place.split(" "), here().split(" ")
    if len(mine) == 4 and len(theirs) == 3:  # of a version that did not record the machine
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
    """Start time of a process in ticks since boot; None if the process does not run."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat[stat.rindex(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else fields[19].decode()


def _seize(lock_path: Path) -> int | None:
    """A descriptor that holds the lock, or None if a living process holds it."""
    descriptor = os.open(lock_path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
