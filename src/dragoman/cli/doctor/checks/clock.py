"""Checks the clock: against this installation, the disk, and the times that are stored."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import dragoman
from dragoman.cli.doctor.finding import Context, Finding, counted
from dragoman.wire.timestamps import timestamp

SKEW = 5.0
"""Seconds by which the disk's clock may differ."""
FUTURE = 300.0
"""Seconds by which a stored time may be ahead: other machines may share the disk."""
SET_CLOCK = (
    "set the clock: `timedatectl set-ntp true`; macOS: `sudo sntp -sS time.apple.com`; WSL: `sudo hwclock -s`"
)


def check(context: Context) -> Iterator[Finding]:
    now = time.time()
    sound = True
    installed = Path(dragoman.__file__).stat().st_mtime
    if now < installed - FUTURE:
        sound = False
        yield Finding(
            "error", "clock", f"it says {timestamp(int(now * 1000))}, which is before Dragoman was installed", SET_CLOCK
        )  # fmt: skip
    skew = _skew(context.paths.state_dir)
    if skew is not None and abs(skew) > SKEW:
        sound = False
        yield Finding(
            "warning", "disk", f"the clock of the disk of {context.paths.state_dir} is {abs(skew):.0f} s "
            f"{'ahead' if skew > 0 else 'behind'}", "set the clocks of this machine and of the file server",
        )  # fmt: skip
    ahead = _ahead(context.paths.state_dir / "journal", now + FUTURE)
    if ahead:
        sound = False
        yield Finding(
            "warning", "journals",
            f"{counted(len(ahead), 'session')} were written in the future, first {ahead[0]}: the clock went back since",
            f"{SET_CLOCK}; if it is right now, nothing: they are shown as the newest until then",
        )  # fmt: skip
    if sound:
        yield Finding("ok", "clock", f"{timestamp(int(now * 1000))}; nothing stored is ahead of it")


def _skew(folder: Path) -> float | None:
    """Seconds that the disk's clock is ahead, by a file without a name; None if there can be none."""
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        return None
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            before = time.time()
            file.write(b"x")
            file.flush()
            return os.fstat(file.fileno()).st_mtime - before
    except OSError:
        return None


def _ahead(journals: Path, until: float) -> list[str]:
    """Sessions whose newest file is from the future."""
    try:
        folders = sorted(journals.iterdir())
    except OSError:
        return []
    return [folder.name for folder in folders if _newest(folder) > until]


def _newest(folder: Path) -> float:
    try:
        return max((file.stat().st_mtime for file in folder.glob("*.log")), default=0.0)
    except OSError:
        return 0.0
