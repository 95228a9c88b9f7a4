"""Changes to files of other programs: shown as a diff, backed up, and made in one step.

A link is followed, so that a file in a folder of a dotfiles manager stays the one that is linked. The mode of the file
stays. A file that changed since it was read is left alone.
"""

from __future__ import annotations

import difflib
import os
import stat
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dragoman.atomic_file import sync_folder

MAX_BYTES = 5_000_000
"""A settings file is written by hand; something larger is none, and is not read into memory."""
_NEW_FILE = 0o666
_CONTEXT = 3


class EditError(Exception):
    """A file cannot be changed; the message says which, why and what to do."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a file has and shall have; None means that there is no file."""

    path: Path
    before: bytes | None
    after: bytes | None
    keep: bool = True
    """Whether a copy of the old content is kept beside the file."""

    @property
    def is_needed(self) -> bool:
        return self.before != self.after

    def diff(self) -> str:
        """The difference in the unified form; empty if there is none."""
        old, new = _lines(self.before), _lines(self.after)
        if old == new:
            return ""
        # Equal lines at both ends are cut, because difflib is slow with large files.
        least = min(len(old), len(new))
        before = next((at for at in range(least) if old[at] != new[at]), least)
        behind = next((at for at in range(least - before) if old[-1 - at] != new[-1 - at]), least - before)
        first, cut = max(0, before - _CONTEXT), max(0, behind - _CONTEXT)
        old, new = old[first : len(old) - cut], new[first : len(new) - cut]
        shown = list(difflib.unified_diff(old, new, n=max(len(old), len(new)), lineterm=""))[3:]
        head = [
            f"--- {self.path if self.before is not None else '/dev/null'}",
            f"+++ {self.path if self.after is not None else '/dev/null'}",
            f"@@ -{first + 1 if old else 0},{len(old)} +{first + 1 if new else 0},{len(new)} @@",
        ]
        return "\n".join([*head, *shown]) + "\n"

    def apply(self) -> Path | None:
        """Make the change; returns the back-up, if there is one. Raises `EditError`, and leaves the file then."""
        if read_file(self.path) != self.before:
            raise EditError(f"{self.path} was changed meanwhile, so it was left alone: run the command again")
        try:
            backup = _back_up(self.path, self.before) if self.keep and self.before is not None else None
            if self.after is None:
                self.path.unlink(missing_ok=True)
            else:
                _replace(self.path.resolve(), self.after)
        except (OSError, RuntimeError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise EditError(
                f"cannot change {self.path}: {reason}; make its folder writable, or choose another file with --file"
            ) from error
        return backup


def read_file(path: Path) -> bytes | None:
    """The content of a file; None if there is none. Raises `EditError` for what is no plain file of a sane size."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise EditError(f"cannot read {path}: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise EditError(f"{path} is not a file, so it was left alone")
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise EditError(
            f"{path} has more than {MAX_BYTES:,} bytes, which no settings have; it was left alone"
        )
    return data


def _lines(content: bytes | None) -> list[str]:
    return content.decode("utf-8", "replace").splitlines() if content is not None else []


def _back_up(path: Path, content: bytes) -> Path:
    """A copy beside the file, with its mode, under a name that has the time."""
    mode = stat.S_IMODE(path.stat().st_mode)
    name = f"{path.name}.{time.strftime('%Y%m%d-%H%M%S')}"
    for attempt in range(100):
        backup = path.with_name(f"{name}{f'-{attempt}' if attempt else ''}.bak")
        with suppress(FileExistsError):
            _write_new(backup, content, mode)
            return backup
    raise EditError(f"there are a hundred back-ups of {path} from this second: remove some")


def _replace(target: Path, content: bytes) -> None:
    """Write a new file beside the target and rename it over that, with the owner and the mode of the old one."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}-{os.urandom(4).hex()}")
    try:
        old = target.stat()
    except FileNotFoundError:
        old = None
    try:
        _write_new(draft, content, None if old is None else stat.S_IMODE(old.st_mode))
        if old is not None:
            with suppress(PermissionError):  # only root may give a file to another user
                os.chown(draft, old.st_uid, old.st_gid)
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    with suppress(OSError):
        sync_folder(target.parent)


def _write_new(path: Path, content: bytes, mode: int | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(path, flags, _NEW_FILE if mode is None else 0o600)
    with os.fdopen(descriptor, "wb") as file:
        if mode is not None:
            os.fchmod(descriptor, mode)
        file.write(content)
        file.flush()
        os.fsync(descriptor)
