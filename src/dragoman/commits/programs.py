"""Runs a program of the user with the user's environment: a push, a pull request, a commit with hooks."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.gateway.ports.commits import CommitError

PATIENCE = 300.0
"""Seconds for a push, or for hooks."""
TOLD = 2000
KEPT = ("GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS")


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """What it complained of, or else printed."""
        return (self.err.strip() or self.out.strip())[-TOLD:]


def environment(**more: str) -> dict[str, str]:
    """The user's, without what chooses a repository or a configuration, and without questions on a terminal."""
    found = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GIT_", "DRAGOMAN_")) or name in KEPT
    }
    return {**found, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", **more}


def run(words: Sequence[str], folder: str, env: dict[str, str], given: bytes = b"") -> Done:
    """Run to the end, without a terminal; raises `CommitError` if it cannot be started or does not end."""
    try:
        process = subprocess.Popen(
            words,
            cwd=folder,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise CommitError(f"{words[0]} could not be started: {error.strerror}", "not_started") from error
    try:
        out, err = process.communicate(given, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise CommitError(
            f"{words[0]} {words[1]} did not end within {PATIENCE:g} s and was stopped", "too_slow"
        ) from None
    return Done(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))


def find_program(name: str, root: str) -> str:
    """The path of a program; empty if there is none but in the project itself, where an agent could put it."""
    found = shutil.which(name)
    if found is None or not Path(found).is_absolute() or Path(found).resolve().is_relative_to(root):
        return ""
    return found
