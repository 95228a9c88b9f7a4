"""What is known of each worktree, in a file beside its folder.

    worktrees/KEY/NAME.json    the record, written before anything else and removed last
    worktrees/KEY/NAME/        the folder
    worktrees/KEY/.view/       a git directory of ours for the repository (`git.py`)

KEY stands for the repository. Names have no dot, so that no folder has the name of a file.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from dragoman.atomic_file import replace_file
from dragoman.gateway.ports.worktrees import Form, WorktreeError

MAX_RECORD = 1 << 20
Stage = Literal["making", "ready", "removing", "gone"]
"""Being made; usable; being removed; removed, while the session that had it can be continued.

    making ─► ready ─► removing ─► (no record)
      │         ▲         │
      └─────────┼─────────┤ failed, or a crash that `clean` found
                └─ gone ◄─┘

`making` and `removing` are held under the repository's lock: seen under that lock they are what a crash left.
"""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    repository: str
    folder: str
    branch: str
    form: Form
    base: str
    """The commit that it began with."""
    into: str
    session: str | None = None
    stage: Stage = "making"
    kept: bool = False
    copied: list[str] = []
    agent: str = ""
    sandbox: str = ""
    """Of a clone: agent and sandbox of the session, which choose the box."""
    created: str = ""


class Records:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def home(self, repository: str) -> Path:
        return self.folder / hashlib.sha256(os.fsencode(repository)).hexdigest()[:12]

    def file(self, record: Record) -> Path:
        return self.home(record.repository) / f"{record.name}.json"

    def write(self, record: Record) -> None:
        home = self.home(record.repository)
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self.file(record), msgspec.json.encode(record))
        except OSError as error:
            raise WorktreeError(f"{self.file(record)} cannot be written: {error.strerror}") from error

    def remove(self, record: Record) -> None:
        self.file(record).unlink(missing_ok=True)

    def all(self, repository: str | None = None) -> Iterator[Record]:
        """All that can be read, in the order of their names."""
        homes = [self.home(repository)] if repository is not None else sorted(self.folder.glob("*"))
        for home in homes:
            for file in sorted(home.glob("*.json"), key=lambda file: file.stem):
                record = self._read(file)
                if record is not None:
                    yield record

    def _read(self, file: Path) -> Record | None:
        try:
            record = msgspec.json.decode(file.read_bytes()[:MAX_RECORD], type=Record)
        except (OSError, msgspec.DecodeError):
            return None
        # A folder that is to be removed one day is never taken from a file alone.
        placed = file == self.file(record) and Path(record.folder) == file.with_suffix("")
        return record if placed else None

    def current(self, record: Record) -> Record | None:
        """The record as it is now; None if it was removed."""
        return self._read(self.file(record))

    def find(self, name: str, repository: str | None) -> Record:
        known = [record for record in self.all() if record.name == name and record.stage != "gone"]
        found = [record for record in known if record.repository == repository] or known
        if not found:
            raise WorktreeError(
                f"There is no worktree {name[:80]!r}: `dragoman worktrees list` shows them", "no_worktree"
            )
        if len(found) > 1:
            places = ", ".join(record.repository for record in found)
            raise WorktreeError(f"There is a worktree {name} of each of {places}: say which", "ambiguous")
        return found[0]

    def orphans(self) -> Iterator[Path]:
        """Folders in which worktrees would be that no record names."""
        for home in sorted(self.folder.glob("*")):
            known = {Path(record.folder) for record in self.all() if self.home(record.repository) == home}
            for folder in sorted(home.glob("*")) if home.is_dir() else ():
                if (
                    folder.is_dir()
                    and not folder.is_symlink()
                    and folder.name[0] != "."
                    and folder not in known
                ):
                    yield folder

    def sweep(self, older_than: float) -> None:
        """Remove drafts that killed processes left, and scratch folders of that age in seconds."""
        for home in sorted(self.folder.glob("*")):
            if home.is_dir():
                with self._locked(home):
                    self._sweep(home, older_than)

    def _sweep(self, home: Path, older_than: float) -> None:
        for draft in home.glob(".*.json.*"):
            draft.unlink(missing_ok=True)
        for scratch in home.glob(".view/tmp*"):
            if time.time() - scratch.lstat().st_mtime >= older_than:
                shutil.rmtree(scratch, ignore_errors=True)
        if not any(home.glob("*.json")):
            shutil.rmtree(home / ".view", ignore_errors=True)

    @contextmanager
    def lock(self, repository: str) -> Iterator[None]:
        """One change at a time per repository, over all processes of this user."""
        with self._locked(self.home(repository)):
            yield

    @contextmanager
    def _locked(self, home: Path) -> Iterator[None]:
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(home / ".lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise WorktreeError(f"{home} cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)
