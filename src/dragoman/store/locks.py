"""The folder of a store: its layout, and its locks.

Every process that may write to the store holds a shared lock on the file `gateways.lock`.

The owner of a session holds a lock on the file `lock` beside its journal, which is created and removed with the
session's folder. It is locked for as long as a process owns the session; the kernel releases the lock however that
process ends, and nothing in the runtime folder matters. Its one line names the present or last owner and the epoch. An
owner that releases the session removes its name from the line.

    locked                                     the process on the line owns the session
    not locked                                 free, if this machine is on the line or no other can write to this disk
    not locked, another machine on the line,   that machine may still own it: locks do not always work over a network.
    a disk that several can share              `dragoman sessions take` overrides

Descriptors are closed on exec and in forked children, so that an agent that outlives us does not keep the lock.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import time
import weakref
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import msgspec

from dragoman import machine
from dragoman.atomic_file import OpenFile
from dragoman.gateway.ports import store as port

NAME = "lock"
GATEWAYS = "gateways.lock"
DESCRIPTION = "session.json"
_DELETED = ".deleted-"
_SESSION_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
_NO_LOCKS = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
_ATTEMPTS, _PAUSE = 5, 0.005  # seconds


class Folder:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.journals = root / "journal"

    def of(self, session_id: str) -> Path:
        """The folder of a session; raises `UnknownSession` for an invalid id."""
        if _SESSION_ID.fullmatch(session_id) is None:
            raise port.UnknownSession(f"{session_id!r} is not the id of a session.")
        return self.journals / session_id

    def use(self, *, alone: bool = False) -> int:
        """Lock the store until the descriptor is closed, shared or (`alone`) exclusively; raises `StoreError`."""
        descriptor = os.open(self.root / GATEWAYS, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                raise port.StoreBusy(f"{self.root} is in use by another Dragoman process.") from error
            if error.errno not in _NO_LOCKS:
                raise
            raise port.StoreUnavailable(
                f"The disk of {self.root} has no file locks ({error.strerror}), so two processes could write to one "
                "session. Put the state folder on another disk: set DRAGOMAN_HOME or XDG_STATE_HOME."
            ) from error
        return descriptor

    def sessions(self) -> list[str]:
        """The ids of all sessions that have a folder."""
        with suppress(FileNotFoundError), os.scandir(self.journals) as entries:
            return [entry.name for entry in entries if entry.name[0] != "." and entry.is_dir()]
        return []

    def hide(self, session_id: str) -> Path:
        """Rename the folder of a session: first of a deletion, then its row is deleted, then the folder removed."""
        hidden = self.journals / f"{_DELETED}{session_id}"
        with suppress(FileNotFoundError):
            self.of(session_id).rename(hidden)
        return hidden

    def hidden(self) -> dict[str, Path]:
        """The hidden folders of sessions whose deletion was interrupted."""
        return {path.name[len(_DELETED) :]: path for path in self.journals.glob(f"{_DELETED}*")}


class Claim(msgspec.Struct, frozen=True, omit_defaults=True):
    """The line in a lock file."""

    epoch: int = 0
    owner: port.Owner | None = None
    """None if the session was released."""
    machine: str = ""
    place: str = ""
    """Boot and process namespace in which `pid` is valid."""
    pid: int = 0

    @property
    def is_of_another_boot(self) -> bool:
        """Whether the session was not released before the machine was rebooted."""
        boot = machine.boot_id()
        return self.owner is not None and bool(boot) and not self.place.startswith(boot)

    @property
    def is_alive(self) -> bool:
        """Whether the process on the line is visible and runs; if not, a new owner may be about to write its line."""
        here = (machine.identity(), machine.place())
        return (self.machine, self.place) == here and machine.runs(self.pid)


_decode = msgspec.json.Decoder(Claim).decode


class SessionLock(OpenFile):
    """The open lock file of a session; this process holds the lock until `close`."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.folder = path.parent
        self.in_new_folder = False
        """The folder was made for this lock; there is no journal in it yet."""
        self._path = path
        self.descriptor = descriptor
        _open.add(self)

    def wait(self, kind: int) -> port.Owner | None:
        """Lock the file; returns its owner if that fails.

        Several attempts: a probe holds the lock for a moment, and a new owner needs a moment to write its line.
        """
        for _ in range(_ATTEMPTS):
            with suppress(BlockingIOError):
                fcntl.flock(self.descriptor, kind | fcntl.LOCK_NB)
                return None
            claim = self.read()
            if claim.owner is not None and claim.is_alive:
                return claim.owner
            time.sleep(_PAUSE)
        if claim.owner is None:
            raise port.StoreUnavailable(
                f"{self._path} is locked by a process that does not say who it is. Find it with `fuser` "
                "(on macOS `lsof`) and end it."
            )
        return claim.owner

    def read(self) -> Claim:
        """The file's line; empty if new or torn by a power failure (journal and directory have the epoch too)."""
        with suppress(msgspec.DecodeError):
            return _decode(os.pread(self.descriptor, 4096, 0).partition(b"\n")[0])
        return Claim()

    def write(self, owner: port.Owner | None, epoch: int) -> None:
        """Write the line; `None` as the owner releases the session."""
        process = (machine.identity(), machine.place(), os.getpid()) if owner is not None else ()
        line = msgspec.json.encode(Claim(epoch, owner, *process)) + b"\n"
        os.pwrite(self.descriptor, line, 0)
        os.ftruncate(self.descriptor, len(line))

    def is_in_place(self) -> bool:
        """Whether the open file is still the one beside the journal."""
        with suppress(FileNotFoundError):
            return os.path.samestat(self._path.stat(), os.fstat(self.descriptor))
        return False

    def is_ours(self, epoch: int) -> bool:
        """Whether the file is in place with our epoch in it.

        A missing file is created again, unless the whole folder is gone or another process was faster.
        """
        if not self._path.exists():
            claim = self.read()
            with suppress(FileNotFoundError, port.SessionHeld), closing(take(self.folder)) as again:
                os.dup2(again.descriptor, self.descriptor, inheritable=False)
                self.write(claim.owner, claim.epoch)
        return self.is_in_place() and self.read().epoch == epoch


def take(folder: Path, *, force: bool = False, make: bool = False) -> SessionLock:
    """Lock the session of this folder; raises `SessionHeld` if a process has it locked.

    Raises `SessionAway` if another machine may own it, unless `force`, and `FileNotFoundError` without the folder,
    unless `make`.
    """
    path = folder / NAME
    new = make and not folder.exists()
    if new:
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    while True:
        with ExitStack() as failing:
            lock = SessionLock(path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            failing.callback(lock.close)
            owner = lock.wait(fcntl.LOCK_EX)
            if owner is not None:
                raise held(folder.name, owner)
            if not force:
                _check_not_away(folder, lock.read())
            if lock.is_in_place():  # else the session was deleted, and perhaps created again
                failing.pop_all()
                lock.in_new_folder = new
                return lock


def held(session_id: str, owner: port.Owner) -> port.SessionHeld:
    text = f"Session {session_id} is live in another Dragoman process; close it there."
    return port.SessionHeld(text, port.HeldElsewhere(owner))


def holder(folder: Path) -> port.Owner | None:
    """The living owner of the session of this folder."""
    with suppress(FileNotFoundError, port.StoreUnavailable):
        lock = SessionLock(folder / NAME, os.open(folder / NAME, os.O_RDONLY | os.O_CLOEXEC))
        with closing(lock):
            return lock.wait(fcntl.LOCK_SH)
    return None


def _check_not_away(folder: Path, claim: Claim) -> None:
    if claim.owner is not None and claim.machine != machine.identity() and machine.is_shared(folder):
        raise port.SessionAway(
            f"Session {folder.name} was last open on {claim.owner.node} and not given back, and {folder} is on a "
            f"network disk: it can only be read here. Go on with it there, or, if that machine is gone, run "
            f"`dragoman sessions take {folder.name}`."
        )


_open: weakref.WeakSet[SessionLock] = weakref.WeakSet()
os.register_at_fork(after_in_child=lambda: list(map(SessionLock.close, list(_open))))
