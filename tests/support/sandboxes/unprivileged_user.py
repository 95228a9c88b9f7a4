"""Running a program as an ordinary user, who cannot look into every process as root can."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

NOBODY = 65534


def prefix() -> list[str]:
    """The words in front of a command; none where we are an ordinary user already.

    What root's folders hold may still be read, since Python itself may lie there; processes may not be looked into.
    """
    if os.getuid() != 0:
        return []
    user = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    reading = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    return [
        "setpriv",
        *user,
        *reading,
        "--securebits=+no_setuid_fixup",
    ]  # else access(2) forgets the capability


def possible() -> bool:
    return os.getuid() != 0 or shutil.which("setpriv") is not None


def hand_over(*folders: Path) -> None:
    """Make them the ordinary user's own."""
    for folder in folders if os.getuid() == 0 else ():
        os.chown(folder, NOBODY, NOBODY)
