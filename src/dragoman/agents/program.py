"""The program of an agent: finding it, its pipes, and explaining why it cannot be started."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path


class SpawnError(Exception):
    """An agent could not be started; the message is a sentence for the user."""


_REASONS: Mapping[int, str] = {
    # The program itself was found, so the interpreter in its first line, or its loader, is missing.
    errno.ENOENT: "the interpreter that it names does not exist",
    errno.EACCES: "it is not executable",
    errno.ENOEXEC: "it is not a program for this machine (exec format error)",
    errno.E2BIG: "its arguments and environment are too large",
    errno.EMFILE: "the gateway has too many open files",
    errno.ENFILE: "the machine has too many open files",
    errno.EAGAIN: "the limit of processes is reached",
    errno.ENOMEM: "there is not enough memory",
}


def find_program(command: Sequence[str], env: Mapping[str, str], cwd: str | None) -> str:
    """The path of the command's program, looked up in the agent's own environment."""
    if not command or not command[0]:
        raise SpawnError("The agent's command is empty.")
    if any("\0" in part for part in command):
        raise SpawnError(f"The command of {command[0]!r} contains a NUL character.")
    if cwd is not None and not Path(cwd).is_dir():
        raise SpawnError(f"The working directory {cwd!r} does not exist.")
    program = command[0]
    if os.sep in program:
        return _check_path(program, Path(cwd or ".", program))
    found = shutil.which(program, path=env.get("PATH", os.defpath))
    if found is None:
        raise SpawnError(f"The program {program!r} was not found on PATH.")
    return str(Path(found).absolute())


class Pipes:
    """Three unbuffered pipes to a program: our ends as files, the program's as descriptors."""

    def __init__(self) -> None:
        made: list[int] = []
        try:
            for _ in range(3):
                made += os.pipe()
        except OSError:
            for descriptor in made:
                os.close(descriptor)
            raise
        in_read, in_write, out_read, out_write, err_read, err_write = made
        self.theirs = (in_read, out_write, err_write)
        self.stdin = open(in_write, "wb", buffering=0)  # noqa: SIM115, PTH123 (closed by the user of the pipe)
        self.stdout = open(out_read, "rb", buffering=0)  # noqa: SIM115, PTH123
        self.stderr = open(err_read, "rb", buffering=0)  # noqa: SIM115, PTH123

    def close_theirs(self) -> None:
        """Close the program's ends, once the program has them."""
        for descriptor in self.theirs:
            os.close(descriptor)

    def close_ours(self) -> None:
        for pipe in (self.stdin, self.stdout, self.stderr):
            pipe.close()


def explain(program: str, error: OSError, cwd: str | None = None) -> str:
    """A sentence that says why an existing program could not be started."""
    if cwd is not None and error.filename == cwd:
        return f"The working directory {cwd!r} cannot be entered: {error.strerror}."
    reason = _REASONS.get(error.errno or 0) or error.strerror or str(error)
    return f"The program {program!r} could not be started: {reason}."


def _check_path(program: str, path: Path) -> str:
    if not path.exists():
        raise SpawnError(f"The program {program!r} does not exist.")
    if path.is_dir():
        raise SpawnError(f"The program {program!r} is a directory.")
    if not os.access(path, os.X_OK):
        raise SpawnError(f"The program {program!r} is not executable.")
    return str(path.absolute())
