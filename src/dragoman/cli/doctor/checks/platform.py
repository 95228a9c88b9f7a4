"""Checks what differs on WSL and macOS."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import dragoman
from dragoman.cli.doctor.finding import Context, Finding

KERNEL = Path("/proc/sys/kernel/osrelease")
WINDOWS_DISK = re.compile(r"/mnt/[a-z](/|$)")
LAUNCHD_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"


def check(context: Context) -> Iterator[Finding]:
    yield Finding(
        "ok",
        "system",
        f"Dragoman {dragoman.__version__}, Python {sys.version.split()[0]}, {context.platform}",
    )
    release = _release()
    if "microsoft" in release.lower():
        yield from wsl(context, release)
    elif context.platform == "darwin":
        yield from macos(context)


def _release() -> str:
    try:
        return KERNEL.read_text().strip()
    except OSError:
        return ""


def wsl(context: Context, release: str) -> Iterator[Finding]:
    """WSL 1 translates Linux calls and lacks many; WSL 2 is a kernel of its own."""
    if "WSL2" not in release:  # such as 4.4.0-19041-Microsoft
        yield Finding(
            "error", "WSL", f"this is WSL 1 ({release}): no namespaces for bubblewrap; locks and inotify differ",
            "convert it from Windows: `wsl --set-version DISTRIBUTION 2`",
        )  # fmt: skip
    else:
        yield Finding("ok", "WSL", f"WSL 2 ({release})")
    places = {"state folder": context.paths.state_dir, "runtime folder": context.paths.runtime_dir}
    for name, place in places.items():
        if WINDOWS_DISK.match(os.path.realpath(place)):
            yield Finding(
                "error", name, f"{place} is on a disk of Windows: its locks and modes do not hold, and it is slow",
                "keep it on the disk of WSL: unset DRAGOMAN_HOME, or set it to a folder below your home",
            )  # fmt: skip
    if context.workspace is not None and WINDOWS_DISK.match(os.path.realpath(context.workspace)):
        yield Finding(
            "warning", "project",
            f"{context.workspace} is on a disk of Windows: reading it is slow, and inotify reports no changes there",
            "clone it to a folder below your home in WSL, and open it from Windows as \\\\wsl.localhost",
        )  # fmt: skip


def macos(context: Context) -> Iterator[Finding]:
    yield Finding(
        "ok", "sandboxes", "no bubblewrap on macOS: podman, docker and ssh are the choices (docs/how-to/macos.md)"
    )  # fmt: skip
    place = context.workspace
    if place is not None and ignores_case(place):
        yield Finding(
            "ok", "project", f"{place} is on a disk that ignores case: rules on paths compare names as they are written"
        )  # fmt: skip
    missing = [
        folder
        for folder in ("/opt/homebrew/bin", "/usr/local/bin")
        if Path(folder).is_dir() and folder not in context.environ.get("PATH", "").split(os.pathsep)
    ]
    if context.environ.get("PATH", "") == LAUNCHD_PATH or missing:
        yield Finding(
            "warning", "PATH",
            "it lacks the folders of Homebrew and npm, as for programs that launchd starts: agents there are not found",
            "give agents.NAME.command the whole path, or start from a shell",
        )  # fmt: skip


def ignores_case(folder: Path) -> bool:
    """Whether a name in other case is the same folder; nothing is written."""
    swapped = folder.with_name(folder.name.swapcase())
    if swapped.name == folder.name:
        return False
    try:
        return swapped.samefile(folder)
    except OSError:
        return False
