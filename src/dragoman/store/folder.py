"""The folder of a store: its layout, and the lock of the processes that use it."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

from dragoman.gateway.ports.store import StoreBusy, StoreUnavailable, UnknownSession

GATEWAYS = "gateways.lock"
DESCRIPTION = "session.json"
_DELETED = ".deleted-"
_SESSION_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
_NO_LOCKS = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})


class Folder:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.journals = root / "journal"

    def of(self, session_id: str) -> Path:
        """The folder of a session; raises `UnknownSession` for an invalid id."""
        if _SESSION_ID.fullmatch(session_id) is None:
            raise UnknownSession(f"{session_id!r} is not the id of a session.")
        return self.journals / session_id

    def use(self, *, alone: bool = False) -> int:
        """Lock the store until the descriptor is closed, shared or (`alone`) exclusively; raises `StoreError`."""
        descriptor = os.open(self.root / GATEWAYS, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                raise StoreBusy(f"{self.root} is in use by another Dragoman process.") from error
            if error.errno not in _NO_LOCKS:
                raise
            raise StoreUnavailable(
                f"The disk of {self.root} has no file locks ({error.strerror}), so two processes could write to one "
                "session. Put the state folder on another disk: set DRAGOMAN_HOME or XDG_STATE_HOME."
            ) from error
        return descriptor

    def sessions(self) -> list[str]:
        """The ids of all sessions that have a folder."""
        with suppress(FileNotFoundError), os.scandir(self.journals) as entries:
            return [entry.name for entry in entries if entry.name[0] != "." and entry.is_dir()]
        return []

    # -- deleting: hide the folder, delete the row, remove the folder; the next start completes an interrupted deletion

    def hide(self, session_id: str) -> None:
        with suppress(FileNotFoundError):
            self.of(session_id).rename(self.journals / f"{_DELETED}{session_id}")

    def hidden(self) -> list[str]:
        """Sessions whose deletion was interrupted."""
        return [path.name[len(_DELETED) :] for path in self.journals.glob(f"{_DELETED}*")]

    def remove_hidden(self, session_id: str) -> None:
        shutil.rmtree(self.journals / f"{_DELETED}{session_id}", ignore_errors=True)
