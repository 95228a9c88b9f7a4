"""Who owns a session: a kernel lock on a file beside its journal.

The file `lock` is made with the session's folder and goes with it. It is locked for as long as a process owns the
session; the kernel lets go of it whatever ends that process, and nothing in the runtime folder matters. Its one line
says who has or had it, and at which epoch. An owner that gives the session back takes its name off that line.

    locked                                     the process on the line has the session
    not locked                                 free, if this machine is on the line or no other can write to this disk
    not locked, another machine on the line,   that machine may have it still: locks do not always reach over a network.
    a disk that several can share              `dragoman sessions take` overrides

Descriptors are closed on exec and in forked children, so that no agent that outlives us keeps a session locked.
"""

from __future__ import annotations

import fcntl
import os
import time
import weakref
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import msgspec

from dragoman import machine
from dragoman.gateway.ports.store import Owner, SessionAway, StoreUnavailable

NAME = "lock"

_ATTEMPTS, _PAUSE = 5, 0.005  # seconds
_COARSE = 2.0
"""Seconds within which a file system may give two changes the same time."""


class Claim(msgspec.Struct, frozen=True, omit_defaults=True):
    """The line in a lock file."""

    epoch: int = 0
    owner: Owner | None = None
    """None if the session was given back."""
    machine: str = ""
    place: str = ""
    """Boot and process namespace, where the process id means something."""
    pid: int = 0

    @property
    def is_of_another_boot(self) -> bool:
        """Not given back before the machine was started again."""
        boot = machine.boot_id()
        return self.owner is not None and bool(boot) and not self.place.startswith(boot)


_decode = msgspec.json.Decoder(Claim).decode


class SessionLock:
    """The lock file of a session; a lock on it is this process's until it is closed."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.folder = path.parent
        self._path = path
        self._descriptor = descriptor
        self._known: tuple[int, ...] = ()
        """What `stat` said of the file when it was last found to be ours; empty before."""
        _open.add(self)

    def wait(self, kind: int) -> Owner | None:
        """Lock it; the process that has it if that cannot be.

        A probe holds the lock for a moment, and a new owner needs one to write its line.
        """
        for _ in range(_ATTEMPTS):
            with suppress(BlockingIOError):
                fcntl.flock(self._descriptor, kind | fcntl.LOCK_NB)
                return None
            claim = self.read()
            if claim.owner is not None and _is_alive(claim):
                return claim.owner
            time.sleep(_PAUSE)
        if claim.owner is None:
            raise StoreUnavailable(
                f"{self._path} is locked by a process that does not say who it is. Find it with `fuser` "
                "(on macOS `lsof`) and end it."
            )
        return claim.owner

    def read(self) -> Claim:
        """An empty one if it is new, or torn by a loss of power: epochs are also in the journal and the directory."""
        with suppress(msgspec.DecodeError):
            return _decode(os.pread(self._descriptor, 4096, 0).partition(b"\n")[0])
        return Claim()

    def write(self, owner: Owner | None, epoch: int) -> None:
        """Say who has it; an owner of None gives it back."""
        process = (machine.identity(), machine.place(), os.getpid()) if owner is not None else ()
        line = msgspec.json.encode(Claim(epoch, owner, *process)) + b"\n"
        os.pwrite(self._descriptor, line, 0)
        os.ftruncate(self._descriptor, len(line))

    def is_in_place(self) -> bool:
        """Whether the file is the one beside the journal."""
        with suppress(FileNotFoundError):
            return os.path.samestat(self._path.stat(), os.fstat(self._descriptor))
        return False

    def is_ours(self, epoch: int) -> bool:
        """Whether it is in place, with our epoch on it; one that is gone is made again.

        A file that has not changed since it was ours still is, which one call tells.
        """
        with suppress(FileNotFoundError):
            found = self._path.stat()
            if _look_of(found) == self._known:
                return True
            ours = self.is_in_place() and self.read().epoch == epoch
            # The clock of a file system is coarse: what was written just now may be written again at the same time.
            settled = time.time() - found.st_mtime > _COARSE
            self._known = _look_of(found) if ours and settled else ()
            return ours
        return self._make_again(epoch)

    def _make_again(self, epoch: int) -> bool:
        claim = self.read()
        again: SessionLock | Owner | None = None
        with suppress(FileNotFoundError):  # with its whole folder
            again = take(self.folder)
        if not isinstance(again, SessionLock):
            return False
        os.dup2(again._descriptor, self._descriptor, inheritable=False)
        again.close()
        self.write(claim.owner, claim.epoch)
        return self.is_in_place() and claim.epoch == epoch

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    __del__ = close  # of one that was taken for a caller who does not wait for it any more


def take(folder: Path, *, force: bool = False) -> SessionLock | Owner:
    """Lock the session of this folder, or tell which process has it.

    Raises `SessionAway` if another machine may have it, unless by `force`, and `FileNotFoundError` without the folder.
    """
    path = folder / NAME
    while True:
        with ExitStack() as failing:
            lock = SessionLock(path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            failing.callback(lock.close)
            owner = lock.wait(fcntl.LOCK_EX)
            if owner is not None:
                return owner
            if not force:
                _check_not_away(folder, lock.read())
            if lock.is_in_place():  # otherwise its session was deleted, and perhaps made anew
                failing.pop_all()
                return lock


def holder(folder: Path) -> Owner | None:
    """The living process that has the session of this folder."""
    with suppress(FileNotFoundError, StoreUnavailable):
        lock = SessionLock(folder / NAME, os.open(folder / NAME, os.O_RDONLY | os.O_CLOEXEC))
        with closing(lock):
            return lock.wait(fcntl.LOCK_SH)
    return None


def _look_of(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _check_not_away(folder: Path, claim: Claim) -> None:
    if claim.owner is not None and claim.machine != machine.identity() and machine.is_shared(folder):
        raise SessionAway(
            f"Session {folder.name} was last open on {claim.owner.node} and not given back, and {folder} is on a "
            f"network disk: it can only be read here. Go on with it there, or, if that machine is gone, run "
            f"`dragoman sessions take {folder.name}`."
        )


def _is_alive(claim: Claim) -> bool:
    """Whether the process on the line is seen from here: if not, its successor may be about to write its own name."""
    here = (machine.identity(), machine.place())
    return (claim.machine, claim.place) == here and machine.runs(claim.pid)


_open: weakref.WeakSet[SessionLock] = weakref.WeakSet()
os.register_at_fork(after_in_child=lambda: list(map(SessionLock.close, list(_open))))
