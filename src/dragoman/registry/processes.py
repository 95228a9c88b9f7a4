"""Processes that use the files of an installed version."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

PS_SECONDS = 10.0


def processes_in(folder: Path) -> list[int]:
    """Ids of processes that were started from below `folder`, or name a file there in their command."""
    inside = f"{os.path.realpath(folder)}/"
    also = f"{folder}/"
    if Path("/proc/self/exe").exists():
        return [pid for pid in _pids() if _uses(pid, inside) or _uses(pid, also)]
    try:
        shown = subprocess.run(
            ["ps", "-axo", "pid=,command="], capture_output=True, text=True, timeout=PS_SECONDS, check=False
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    lines = [line.strip().partition(" ") for line in shown.splitlines() if inside in line or also in line]
    return [int(pid) for pid, _, _ in lines if pid.isdigit()]


def _pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    except OSError:
        return []


def _uses(pid: int, inside: str) -> bool:
    here = Path(f"/proc/{pid}")
    try:
        if os.readlink(here / "exe").startswith(inside):  # noqa: PTH115 (a str)
            return True
    except OSError:
        pass  # another user's, or just gone
    try:
        return inside.encode() in (here / "cmdline").read_bytes()
    except OSError:
        return False
