"""This machine: its name, boot id, file limit, processes, and whether a folder is on a disk that others share."""

from __future__ import annotations

import errno
import functools
import os
import platform
import re
import resource
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_MACHINE_ID = Path("/etc/machine-id")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MOUNTS = Path("/proc/self/mountinfo")

OLD_SOCKET = 60.0  # seconds
MAX_SOCKET_PATH = 100
"""Bytes of the longest socket path that is used as it is; Linux allows 107, macOS 103. Home folders can be longer."""

NETWORK = frozenset(
    [
        "9p",
        "afpfs",
        "afs",
        "beegfs",
        "ceph",
        "cephfs",
        "cifs",
        "coda",
        "gfs2",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "orangefs",
        "panfs",
        "prl_fs",
        "smb3",
        "smbfs",
        "vboxsf",
        "virtiofs",
        "vmhgfs",
        "webdav",
    ]
)
"""File systems that several machines can mount at once; `is_shared` also counts FUSE, which may be one."""


def node() -> str:
    return platform.node() or "this-machine"


@functools.cache
def identity() -> str:
    """An id that survives reboots: machine id and name, as cloned images share an id and machines may share a name."""
    try:
        known = _MACHINE_ID.read_text().strip()
    except OSError:
        known = ""
    return f"{known or '-'}@{node()}".replace(" ", "_")


@functools.cache
def boot_id() -> str:
    """An id that changes with each boot; empty if the system has none."""
    if sys.platform == "darwin":
        return _output_of("sysctl", "-n", "kern.bootsessionuuid").strip()
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


@functools.cache
def place() -> str:
    """Boot id and PID namespace: the scope in which a process id is valid."""
    try:
        return f"{boot_id()} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return boot_id()


def runs(pid: int) -> bool:
    """Whether a process with this id runs; the id must come from the same `place`."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


@contextmanager
def short_path(path: Path) -> Iterator[str]:
    """Yield a shorter name for the same socket, valid inside the `with`; without `/proc/self/fd` the path itself."""
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH or not Path("/proc/self/fd").is_dir():
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def listens(path: Path) -> bool:
    """Whether a process listens at this socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) not in (errno.ECONNREFUSED, errno.ENOENT)


def sweep_sockets(folder: Path) -> None:
    """Remove sockets of dead processes; a recent one may belong to a process that is about to listen."""
    for path in folder.glob("*.sock"):
        with suppress(OSError):
            old = time.time() - path.lstat().st_mtime > OLD_SOCKET
            if old and path.is_socket() and not listens(path):
                path.unlink()


_soft_files = 0
"""The soft limit of open files before `raise_file_limit` changed it; 0 if unchanged."""


def raise_file_limit(wanted: int) -> int:
    """Raise the soft limit of open files to `wanted` if the hard limit allows it; returns the resulting limit."""
    global _soft_files
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft == resource.RLIM_INFINITY or soft >= most:
        return wanted if soft == resource.RLIM_INFINITY else soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    except (OSError, ValueError):
        # macOS refuses more than kern.maxfilesperproc, whatever the hard limit says.
        return soft
    _soft_files = _soft_files or soft
    return most


def restore_file_limit(pid: int) -> None:
    """Give a child process the original limit of open files: some programs close or scan every possible one."""
    if _soft_files and hasattr(resource, "prlimit"):
        with suppress(OSError, ValueError):  # the process has ended or changed its user
            _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (min(_soft_files, hard), hard))


def is_shared(folder: Path) -> bool:
    """Whether other machines may mount the same folder; true if its file system is not known.

    Does not detect a block device that several machines are attached to (iSCSI, Fibre Channel).
    """
    kind = file_system(folder)
    return not kind or kind in NETWORK or "fuse" in kind


def file_system(folder: Path) -> str:
    """The kernel's name for the folder's file system type; empty if not known."""
    device = folder.stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        mounts = _MOUNTS.read_text(errors="replace").splitlines()
    except OSError:
        return _mounted_at(folder.resolve())
    above = []
    path = folder.resolve()
    for line in mounts:
        fields, _, source = line.partition(" - ")
        _, _, number, _, point, *_ = fields.split(" ")
        kind = source.split(" ")[0]
        if number == wanted:
            return kind
        if path.is_relative_to(_unescape(point)):
            above.append((len(point), kind))
    # Files on btrfs have the device number of their subvolume, which mountinfo does not list.
    return _innermost(above)


def _unescape(point: str) -> str:
    """Decode a mount point of mountinfo, where a space is `\\040`."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), point)


def _innermost(mounts: list[tuple[int, str]]) -> str:
    """The type of the longest mount point; of several mounts on one point the last, which hides the others."""
    return max(reversed(mounts), key=lambda mount: mount[0], default=(0, ""))[1]


def _output_of(*command: str) -> str:
    """The stdout of a program; empty if it fails."""
    import subprocess  # not needed where there is /proc

    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def _mounted_at(folder: Path) -> str:
    """The type by `mount` of macOS and BSD: `/dev/disk3s5 on /System/Volumes/Data (apfs, local, journaled)`.

    The longest mount point above the folder counts. Home folders of macOS appear below `/` instead of
    `/System/Volumes/Data`, which is of the same type.
    """
    found = re.findall(r" on (/.*) \(([^,)]+)[^()]*\)$", _output_of("mount"), re.MULTILINE)
    return _innermost([(len(point), kind) for point, kind in found if folder.is_relative_to(point)])
