"""Disks that are full or read-only, in a namespace of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ALONE = ("unshare", "--mount") if os.geteuid() == 0 else ("unshare", "--mount", "--map-root-user")
"""Mounts made below this prefix vanish with the process."""


def mounting(command: str, *namespaces: str) -> tuple[str, ...]:
    """A prefix that runs a mount command before what follows it, in more `namespaces` if given, or a loud skip."""
    trial = [*ALONE, "sh", "-c", "mount -t tmpfs tmpfs /mnt"]
    if shutil.which("unshare") is None or subprocess.run(trial, capture_output=True, check=False).returncode:
        pytest.skip("NOT TESTED: mounts are not permitted here, so no full or read-only disk can be made")
    return (*ALONE, *namespaces, "sh", "-c", f'{command} && exec "$@"', "sh")


def small_disk(home: Path, spare: Path) -> tuple[str, ...]:
    """A prefix that puts `home`, with its settings, on a disk of 6 MB; they are kept at `spare` meanwhile."""
    settings = f"{home}/config.toml"
    mount = f"mount -t tmpfs -o size=6m,mode=700 tmpfs {home}"
    return mounting(f"cp {settings} {spare} && {mount} && cp {spare} {settings}")
