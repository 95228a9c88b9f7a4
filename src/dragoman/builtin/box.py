"""The box of sandbox mode: bubblewrap around a command, with the roots and nothing else writable."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from dragoman.builtin.errors import Refused
from dragoman.sandbox.bubblewrap import ETC, SYSTEM


def boxed(words: Sequence[str], roots: Sequence[str], cwd: str) -> list[str]:
    """The command inside the box; refuses when this machine has no way to make one."""
    program = shutil.which("bwrap")
    if program is None:
        raise Refused("Sandbox mode needs bubblewrap (the program `bwrap`), which is not installed here.")
    box = [program, "--die-with-parent", "--unshare-all", "--new-session", "--proc", "/proc", "--dev", "/dev"]
    box += ["--tmpfs", "/tmp", "--setenv", "HOME", "/tmp"]
    for path in (*SYSTEM, *ETC):
        box += ["--ro-bind-try", path, path]
    for root in roots:
        box += ["--bind", root, root]
    return [*box, "--chdir", cwd, "--", *words]
