"""Remembered answers in one file of the state folder, shared by all processes of a user.

A process sees what another one wrote at its next decision, by the file's facts. Without a path they are in memory only.
A file that cannot be read or that others may write is as good as empty: everything is asked, and nothing is written
over it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from dragoman.atomic_file import locked, replace_file, stamp_of
from dragoman.policy.act import Act
from dragoman.policy.high_water import HighWater, high_water
from dragoman.policy.memory.index import MemoryIndex
from dragoman.policy.memory.memory import Memory
from dragoman.policy.memory.pattern import NotRemembered
from dragoman.policy.rules import Rule

log = logging.getLogger(__name__)

FILE = "remembered.json"
MAX_MEMORIES = 2000
"""More than a person can have answered; sessions that are gone lose theirs first."""
LOCK_SECONDS = 1.0
"""To wait for another process that writes, which takes it a millisecond."""


class Busy(NotRemembered):
    """Another process writes the file at this moment."""


class _Content(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    version: int = 1
    memories: list[Memory] = []


class Remembered:
    """All remembered answers; every call looks whether the file has changed."""

    def __init__(self, path: Path | None, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._path = path
        self._now = now
        self._mark = high_water(path.parent) if path is not None else HighWater()
        self._mark.advance(now())
        self._seen: tuple[int, int, int] | None = None
        self._broken: str | None = None
        self._memories: dict[str, Memory] = {}
        self._index = MemoryIndex()

    def all(self) -> list[Memory]:
        """Those in force, the oldest first."""
        self._look()
        now = self.now()
        return [memory for memory in self._memories.values() if memory.holds(now)]

    def rules(self, act: Act) -> list[Rule]:
        """Rules of the memories that may be about an act."""
        self._look()
        if not self._memories:
            return []
        now = self.now()
        return [
            rule
            for memory, rule in self._index.about(act)
            if memory.is_for(act.session, act.project or act.workspace) and memory.holds(now)
        ]

    def add(self, memory: Memory, *, wait: bool = True) -> None:
        """Remember; raises `NotRemembered` if it cannot be stored. Without `wait`, `Busy` if another process writes."""
        with self._changing(wait):
            self._make_room()
            self._memories[memory.id] = memory

    def wait_for_lock(self) -> None:
        """Wait, with a bound, until no other process writes; for threads."""
        if self._path is not None:
            with suppress(OSError), locked(self._path.with_suffix(".lock"), LOCK_SECONDS):
                pass

    def forget(self, id: str) -> Memory | None:
        """Take one back; None if there is none with this id. Raises `NotRemembered` if it cannot be stored."""
        with self._changing():
            return self._memories.pop(id, None)

    def forget_session(self, session: str, *, wait: bool = True) -> None:
        """A deleted session: what held in it alone goes with it. `wait` as in `add`."""
        self._look()
        own = [one.id for one in self._memories.values() if one.scope == "session" and one.session == session]
        if own:
            with self._changing(wait):
                for id in own:
                    self._memories.pop(id, None)

    def now(self) -> datetime:
        """Never earlier than before: a clock that is set back must not make an answer hold for longer."""
        return self._mark.advance(self._now())

    # -- the file

    @contextmanager
    def _changing(self, wait: bool = True) -> Iterator[None]:
        """Change `_memories` as they are in the file now, and store them."""
        if self._path is None:
            yield
            self._make_rules()
            return
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked(self._path.with_suffix(".lock"), LOCK_SECONDS if wait else 0):
                self._look()
                if self._broken is not None:
                    raise NotRemembered(self._broken)
                before = dict(self._memories)
                yield
                try:
                    content = _Content(memories=list(self._memories.values()))
                    replace_file(self._path, msgspec.json.format(msgspec.json.encode(content), indent=1))
                except OSError:
                    self._memories = before
                    raise
                self._seen = stamp_of(self._path)
                self._make_rules()
        except BlockingIOError as error:
            raise Busy(f"{self._path} cannot be written: another process holds its lock.") from error
        except OSError as error:
            raise NotRemembered(f"{self._path} cannot be written: {error.strerror or error}.") from error

    def _look(self) -> None:
        """Read the file again if it is another than the one last read."""
        if self._path is None:
            return
        facts = stamp_of(self._path)
        if facts == self._seen:
            return
        self._seen, self._broken = facts, None
        self._memories = {}
        if facts is not None:
            try:
                self._memories = {memory.id: memory for memory in _read(self._path)}
            except (OSError, ValueError, msgspec.MsgspecError, RecursionError) as error:
                self._broken = (
                    f"{self._path}: {error}. Nothing remembered is in force; mend or delete the file."
                )
                log.warning("%s", self._broken)
        self._make_rules()

    @property
    def broken(self) -> str | None:
        """What is wrong with the file, with what to do; None if nothing is."""
        self._look()
        return self._broken

    def _make_rules(self) -> None:
        self._index = MemoryIndex(self._memories.values())

    def _make_room(self) -> None:
        """Drop what has ended; where there are too many, the oldest of single sessions."""
        now = self.now()
        self._memories = {id: one for id, one in self._memories.items() if one.holds(now)}
        if len(self._memories) < MAX_MEMORIES:
            return
        oldest = next((id for id, one in self._memories.items() if one.scope == "session"), None)
        if oldest is None:
            raise NotRemembered(
                f"There are {MAX_MEMORIES} remembered answers: forget some (`dragoman policy remembered`)."
            )
        del self._memories[oldest]


def is_private(descriptor: int) -> bool:
    """Whether only this user can have written an open file."""
    facts = os.fstat(descriptor)
    return facts.st_uid == os.geteuid() and not facts.st_mode & 0o022


def _read(path: Path) -> list[Memory]:
    with path.open("rb") as file:
        if not is_private(file.fileno()):
            raise ValueError("others may write to it (`chmod 600`)")
        content = msgspec.json.decode(file.read(), type=_Content)
    if content.version != 1:
        raise ValueError(f"it is of version {content.version}, which this Dragoman does not know")
    return content.memories
