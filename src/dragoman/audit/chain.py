"""Writes the chain of this process: each record is with the kernel before `append` returns."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import gmtime, monotonic, strftime
from typing import Any

import dragoman
from dragoman import machine
from dragoman.audit import folder as places
from dragoman.audit import record, seek
from dragoman.audit.errors import AuditError
from dragoman.audit.keys import Key, KeyProblem, fingerprint, load_key
from dragoman.audit.seek import Places
from dragoman.wire import timestamps

SEGMENT_BYTES = 16 << 20
MOST_SESSIONS = 100
"""Sessions of a chain that the index names; with more, the chain is looked at by every question about a session."""
MOST_FULL = 200
"""Full segments whose places wait to be stored; a reader makes those that are dropped."""
LOCKED_PAUSE = 5.0
"""Seconds without another attempt to begin while a process holds the index: each one holds up the event loop."""
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"


class Chain:
    """Any thread may use it. It begins, with its folder, at the first append."""

    def __init__(
        self,
        folder: Path,
        tell: Callable[[bytes], None] = lambda line: None,
        *,
        every: bool = False,
        retain_days: int = 0,
    ) -> None:
        """`tell` is given each head, or `every` line; heads say how many days records are kept, 0 for all."""
        self._folder = folder
        self._retain_days = retain_days
        self._tell = tell
        self._every = every
        self._guard = threading.Lock()
        self.id = ""
        self._descriptor = self._lock = -1
        self._offset = 0
        self._n = 0
        self._hash = record.BEGINNING
        self._signed = 0
        """Number of the last head."""
        self._spoilt = False
        self._locked_until = 0.0
        self._key: Key | None = None
        self._places = Places()
        self._full: deque[tuple[Path, Places, int]] = deque(maxlen=MOST_FULL)
        """Full segments whose places are not stored yet."""
        self._sessions: set[str] | None = set()
        """Sessions of the chain; None if there are too many to name them."""

    @property
    def last(self) -> int:
        """Number of the last record."""
        return self._n

    def append(self, kind: str, facts: dict[str, Any]) -> str:
        """Write one record and return its id. Raises `AuditError` and writes nothing if it cannot."""
        with self._guard:
            try:
                if not self.id:
                    self._begin()
                elif self._offset >= SEGMENT_BYTES:
                    self._rotate()
                self._write(kind, facts)
            except (OSError, record.Broken) as error:
                raise _explained(error, self._folder) from error
            return f"{self.id}:{self._n}"

    def sign(self) -> None:
        """Append a signed head, if there are records since the last one. Raises `AuditError` or `KeyProblem`."""
        try:
            if self._key is None:
                self._key = load_key(self._folder)
            with self._guard:
                if self._n != self._signed:
                    self._sign()
        except (OSError, record.Broken) as error:
            raise _explained(error, self._folder) from error

    def close(self) -> None:
        """Sign what is not signed yet and tell the index how far the chain reaches, also if it cannot be signed."""
        if not self.id:
            return
        unsigned: Exception | None = None
        try:
            self.sign()
        except (AuditError, KeyProblem) as error:
            unsigned = error
        with self._guard:
            try:
                known: dict[str, Any] = {}
                if self._sessions is not None:
                    known["sessions"] = sorted(self._sessions)
                known |= {"chain": self.id, "last": self._n, "hash": self._hash}
                places.add_to_index(self._folder, "ended", key=self._key, **known)
                if self._offset >= seek.WORTH:
                    self._full.append((self._segment, self._places, self._offset))
            except (OSError, record.Broken) as error:
                raise _explained(error, self._folder) from error
            finally:
                self._close_files()
        self.store_places()
        if unsigned is not None:
            raise unsigned

    def store_places(self) -> None:
        """Store where the sessions' records are in the segments that are full, for readers."""
        while self._full:
            path, noted, size = self._full.popleft()
            noted.store(path, size)

    def _close_files(self) -> None:
        for descriptor in (self._descriptor, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self.id, self._descriptor, self._lock = "", -1, -1

    def _begin(self) -> None:
        """Write the first record, then name the chain in the index: one that the index names has records."""
        if monotonic() < self._locked_until:
            raise BlockingIOError(errno.EAGAIN, places.LOCKED)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        id = f"{strftime('%Y%m%d', gmtime())}-{''.join(secrets.choice(_ALPHABET) for _ in range(8))}"
        chain = self._folder / id
        chain.mkdir(mode=0o700)
        try:
            self._lock = os.open(chain / places.LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            places.lock(self._lock)
            self._descriptor = self._open_segment(chain, 1)
            self._places, self._sessions = Places(), set()
            self._n, self._offset, self._hash, self._spoilt = 0, 0, record.BEGINNING, False
            self._signed = 0
            n, hash = places.last_index_line(self._folder)
            self._write(
                "chain",
                {
                    "version": record.VERSION,
                    "chain": id,
                    "program": dragoman.__version__,
                    "node": machine.node(),
                    "boot": machine.boot_id(),
                    "pid": os.getpid(),
                    "index": [n, hash],
                },
            )
            places.add_to_index(self._folder, "begun", chain=id, node=machine.node(), pid=os.getpid())
        except Exception as error:
            if isinstance(error, BlockingIOError):
                self._locked_until = monotonic() + LOCKED_PAUSE
            self._close_files()
            shutil.rmtree(chain, ignore_errors=True)  # tried again, it gets another id
            raise
        self.id = id

    def _write(self, kind: str, facts: dict[str, Any], sign: Callable[[bytes], bytes] | None = None) -> bytes:
        at = timestamps.now()
        line = record.make_line(self._n + 1, at, kind, facts, self._hash)
        if sign is not None:
            line = sign(line)
        if self._spoilt:
            os.ftruncate(self._descriptor, self._offset)
            self._spoilt = False
        try:
            places.write_at(self._descriptor, line + b"\n", self._offset)
        except OSError:
            self._spoilt = True  # what was cut off may still be there
            raise
        self._note(at, facts.get("session"))
        self._n += 1
        self._offset += len(line) + 1
        self._hash = record.digest(line)
        if self._every:
            self._tell(line)
        return line

    def _sign(self) -> None:
        key = self._key
        assert key is not None
        n, hash = places.last_index_line(self._folder)
        facts = {
            "chain": self.id,
            "index": [n, hash],
            "retainDays": self._retain_days,
            "key": fingerprint(key.public),
        }
        line = self._write("head", facts, lambda line: record.signed(line, key.sign(line)))
        self._signed = self._n
        if not self._every:
            self._tell(line)

    def _rotate(self) -> None:
        """Go on in a new segment, which begins right after a head."""
        if self._key is not None and self._signed != self._n:
            self._sign()
        full = (self._segment, self._places, self._offset)
        descriptor = self._open_segment(self._folder / self.id, self._n + 1)
        os.close(self._descriptor)
        self._descriptor, self._offset = descriptor, 0
        self._full.append(full)
        self._places = Places()

    def _note(self, at: str, session: object) -> None:
        self._places.add(at, session, self._offset)
        if self._sessions is not None and isinstance(session, str):
            self._sessions.add(session)
            if len(self._sessions) > MOST_SESSIONS:
                self._sessions = None

    def _open_segment(self, chain: Path, first: int) -> int:
        self._segment = chain / places.segment_name(first)
        return os.open(self._segment, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)


def end_dead_chains(folder: Path) -> list[str]:
    """Tell the index how far the chains of killed processes reach, so that their ends cannot be cut off unseen."""
    open_chains: dict[str, None] = {}
    lines, offset = places.read_index(folder)
    for line in lines:
        facts = record.read_record(line)
        if facts["kind"] == "begun":
            open_chains[str(facts.get("chain"))] = None
        elif facts["kind"] == "ended":
            open_chains.pop(str(facts.get("chain")), None)
    ended = []
    for id in open_chains:
        chain = folder / id
        if not chain.is_dir() or places.is_alive(chain):
            continue
        reach: dict[str, Any] = {"last": 0, "hash": record.BEGINNING, "sessions": []}
        try:
            end = places.end_of_chain(chain)
            if end is not None:
                reach = {"last": end.n, "hash": end.hash, **_sessions_of(chain)}
        except (record.Broken, OSError):
            continue  # damaged, of a newer version, or no file: `verify` tells
        told = {"chain": id, **reach, "killed": True}
        # its own process, or another one that looks after it, may have told it meanwhile
        if places.add_to_index(folder, "ended", key=_usable_key(folder), unless_since=offset, **told):
            ended.append(id)
    return ended


def _usable_key(folder: Path) -> Key | None:
    with suppress(KeyProblem, OSError):
        return load_key(folder)
    return None


def _sessions_of(chain: Path) -> dict[str, Any]:
    """The sessions of a killed process's chain, if they are not too many; the places of its segments are stored."""
    found: set[str] = set()
    for path in places.segments(chain):
        known = seek.stored_seek(path)
        found.update(known.sessions if known is not None else seek.make_seek(path).sessions)
    return {"sessions": sorted(found)} if len(found) <= MOST_SESSIONS else {}


def _explained(error: OSError | record.Broken, folder: Path) -> AuditError:
    if isinstance(error, record.Broken):
        index = folder / places.INDEX
        return AuditError(f"The audit in {folder} cannot be written: the end of {index} is damaged: {error}.")
    hints = {
        errno.ENOSPC: "free some space",
        errno.EDQUOT: "your quota is used up: remove something",
        errno.EROFS: "the file system is read-only: mount it for writing",
        errno.EACCES: "give yourself the right to write there",
        errno.EAGAIN: "end that process, or wait until it is done",
    }
    hint = hints.get(error.errno or 0, "look at the disk")
    return AuditError(f"The audit in {folder} cannot be written: {error.strerror}; {hint}.")
