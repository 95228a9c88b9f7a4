"""Checks the limits of this user: open files, processes, inotify."""

from __future__ import annotations

import errno
import resource
from collections.abc import Iterator
from pathlib import Path

from dragoman.cli.doctor.finding import Context, Finding

FEWEST_FILES = 256
"""Below this a gateway with one agent and its sandbox may fail."""
FEW_FILES = 4096
"""A live session needs about ten: its journal, its lock, the pipes of its agent."""
FEW_PROCESSES = 256
INOTIFY = Path("/proc/sys/fs/inotify")
FEW_WATCHES = 8192


def check(context: Context) -> Iterator[Finding]:
    yield _files()
    if (processes := _processes()) is not None:
        yield processes
    if context.platform == "linux":
        yield _inotify()
    else:
        yield Finding("ok", "inotify", "not on this system: projects are compared file by file at each turn")


def _files() -> Finding:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or hard >= FEW_FILES:
        shown = "without limit" if hard == resource.RLIM_INFINITY else f"{hard:,}"
        return Finding("ok", "open files", f"up to {shown}")
    too_few = hard < FEWEST_FILES
    what = (
        "a gateway cannot work with so few" if too_few else f"enough for about {hard // 10} sessions at once"
    )
    return Finding(
        "error" if too_few else "warning",
        "open files",
        f"at most {hard} may be open: {what}",
        "raise the hard limit: `ulimit -Hn` shows it, /etc/security/limits.conf or LimitNOFILE= of a unit sets it",
    )


def _processes() -> Finding | None:
    try:
        _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    except (AttributeError, ValueError, OSError):
        return None
    if hard == resource.RLIM_INFINITY or hard >= FEW_PROCESSES:
        return None
    return Finding(
        "warning", "processes", f"this user may have {hard}, and agents start many",
        "raise it in /etc/security/limits.conf (nproc), or TasksMax= of a unit",
    )  # fmt: skip


def _inotify() -> Finding:
    """Whether a queue and a watch can be had, and how many there may be."""
    from dragoman.checkpoints.watching.inotify import MOVE_SELF, Inotify

    name, fewest = "max_user_instances", 512
    try:
        queue = Inotify()
        try:
            name, fewest = "max_user_watches", 524288
            queue.add(b"/", MOVE_SELF)
        finally:
            queue.close()
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENOSPC):
            return Finding("warning", "inotify", f"cannot be used: {error.strerror or error}",
                           "nothing: projects are compared file by file at each turn, which is slower")  # fmt: skip
        return Finding(
            "warning", "inotify", f"all that fs.inotify.{name} allows are in use", _raise(name, fewest)
        )
    watches = _setting("max_user_watches")
    if watches is not None and watches < FEW_WATCHES:
        what = (
            f"only {watches} folders can be watched; larger projects are compared file by file at each turn"
        )
        return Finding("warning", "inotify", what, _raise("max_user_watches", 524288))
    return Finding("ok", "inotify", f"works; up to {watches:,} folders" if watches is not None else "works")


def _raise(name: str, number: int) -> str:
    return f"`sudo sysctl fs.inotify.{name}={number}`, and the same in /etc/sysctl.d to keep it"


def _setting(name: str) -> int | None:
    try:
        return int((INOTIFY / name).read_text())
    except (OSError, ValueError):
        return None
