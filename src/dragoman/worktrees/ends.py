"""Worktrees that exist: what they hold, merging, keeping, discarding, cleaning; blocking, for threads and commands."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from dragoman.checkpoints.git import Program, find_git
from dragoman.gateway.ports.acts import Acting, NotRecorded, unrecorded
from dragoman.gateway.ports.checkpoints import CheckpointError
from dragoman.gateway.ports.worktrees import (
    Cleaned,
    Merged,
    Worktree,
    WorktreeError,
)
from dragoman.worktrees import hooked, making, merging
from dragoman.worktrees.boxed import Enter
from dragoman.worktrees.records import Record, Records
from dragoman.worktrees.repository import Repository, as_worktree_error
from dragoman.worktrees.status import describe

LOCAL = "local"
"""The identity of commands on this machine."""
FRESH = 300.0
"""Seconds that a worktree may wait for its session to begin."""
SCRATCH = 600.0
"""Seconds after which a scratch folder belongs to no process that runs: each call of git in it is bounded."""
NO_GIT = "There is no program `git` on the PATH, so there are no worktrees: install git"


class Ends:
    """All but the making of worktrees."""

    def __init__(self, folder: Path, acting: Acting = unrecorded, enter: Enter | None = None) -> None:
        """`acting` records what is done, before it is; `by` is the identity that asked for it.

        `enter` runs commands in the boxes of sessions; without it clones cannot be looked at.
        """
        self._enter = enter
        self._records = Records(folder)
        self._acting = acting
        self._program = find_git()

    # -- look

    def all(self, repository: str | None = None) -> list[Worktree]:
        return [self._described(record) for record in self._records.all(repository) if record.stage != "gone"]

    def sessions(self) -> list[str]:
        """Sessions that have a worktree, or had one."""
        return [record.session for record in self._records.all() if record.session is not None]

    def find(self, name: str, repository: str | None) -> Worktree:
        return self._described(self._records.find(name, repository))

    def _described(self, record: Record) -> Worktree:
        try:
            with self._git():
                return describe(self._repository(record.repository), record)
        except WorktreeError as error:  # the repository or the sandbox is gone, or cannot be read
            return describe(None, record, str(error))

    # -- at the end

    def merge(
        self,
        name: str,
        repository: str | None,
        message: str | None,
        into: str | None,
        by: str = LOCAL,
        *,
        hooks: bool = False,
    ) -> Merged:
        """Merge into the branch that is checked out; with `hooks` a person allows what the repository configures."""

        def act(place: Repository, record: Record) -> Merged:
            facts: dict[str, Any] = {"hooks": True} if hooks else {}
            with self._act("worktree_merged", record, by, place, into=into or record.into, **facts):
                way = hooked.merge if hooks else merging.merge
                return way(place, record, message, into)

        return self._with(name, repository, act)

    def rebase(self, name: str, repository: str | None, by: str = LOCAL) -> Merged:
        def act(place: Repository, record: Record) -> Merged:
            with self._act("worktree_rebased", record, by, place, onto=record.into):
                return merging.rebase(place, record)

        return self._with(name, repository, act)

    def keep(self, name: str, repository: str | None) -> Worktree:
        record = self._records.find(name, repository)
        with self._records.lock(record.repository):
            kept = msgspec.structs.replace(self._records.find(name, record.repository), kept=True)
            self._records.write(kept)
        return self._described(kept)

    def discard(self, name: str, repository: str | None, by: str = LOCAL, *, force: bool = False) -> Worktree:
        record = self._records.find(name, repository)
        with self._records.lock(record.repository):
            found = self._described(record)
            if found.loses and not force:
                raise WorktreeError(f"{name} has {found.loses}: say that they may be lost", "would_lose")
            self._discard(record, found.loses, "discarded", by, continued=record.session is not None)
            return found

    def _discard(self, record: Record, loses: str, why: str, by: str, *, continued: bool) -> None:
        """Remove a worktree; if its session may be continued, the record stays, and it can be made again."""
        try:
            with self._git():
                place: Repository | None = self._repository(record.repository)
        except WorktreeError:
            place = None
        with (
            self._git(needed=False),
            self._act("worktree_discarded", record, by, place, loses=loses, why=why),
        ):
            self._remove(place, record, continued=continued)

    def clean(self, live: Collection[str], by: str = LOCAL, *, stored: Collection[str] = ()) -> Cleaned:
        """Remove what holds nothing of its own and no session in `live` uses; of those in `stored` the record stays."""
        removed: list[str] = []
        left: dict[str, str] = {}
        for known in list(self._records.all()):
            with self._records.lock(known.repository):
                record = self._records.current(known)
                if record is not None:
                    self._clean(record, live, stored, by, removed, left)
        self._records.sweep(SCRATCH)
        for folder in list(self._records.orphans()):  # made by hand, or its record was lost
            left[folder.name] = f"{folder} belongs to no known worktree: look at it, then remove it by hand"
        return Cleaned(removed, left)

    def _clean(
        self,
        record: Record,
        live: Collection[str],
        stored: Collection[str],
        by: str,
        removed: list[str],
        left: dict[str, str],
    ) -> None:
        if record.stage == "gone":
            if record.session not in stored:
                self._records.remove(record)
            return
        found = self._described(record)
        why = self._stays(record, found, live, stored) if record.stage != "removing" else ""
        if why:
            left[record.name] = why
            return
        self._discard(record, found.loses, "clean", by, continued=record.session in stored)
        removed.append(record.name)

    def _stays(self, record: Record, found: Worktree, live: Collection[str], stored: Collection[str]) -> str:
        if found.kept:
            return "it is kept"
        if found.state != "unfinished" and found.session in live:
            return f"the session {found.session} uses it"
        begins = found.session is not None and found.session not in stored and _age(record) < FRESH
        if found.state == "ready" and begins:
            return (
                f"it was made less than {FRESH / 60:g} minutes ago, for a session that may be about to begin"
            )
        return found.loses

    def session_deleted(self, session_id: str, by: str = LOCAL, *, discard: bool = False) -> Worktree | None:
        """Remove the worktrees of a deleted session; returns one that stays because it would lose something."""
        stays = None
        for record in list(self._records.all()):
            if record.session != session_id:
                continue
            with self._records.lock(record.repository):
                if record.stage == "gone":
                    self._records.remove(record)
                    continue
                found = self._described(record)
                if (found.loses or found.kept) and not discard:
                    stays = found
                    self._records.write(msgspec.structs.replace(record, session=None))
                else:
                    self._discard(record, found.loses, "session deleted", by, continued=False)
        return stays

    # -- the rest

    def _present(self, record: Record) -> Record:
        if not Path(record.folder).is_dir():
            raise WorktreeError(
                f"The folder {record.folder} is gone; its branch {record.branch} is still there: merge it with git, or "
                f"`dragoman worktrees discard {record.name}` removes it",
                "folder_missing",
            )
        return record

    def _with(self, name: str, repository: str | None, act: Callable[[Repository, Record], Merged]) -> Merged:
        record = self._present(self._records.find(name, repository))
        with self._git(), self._records.lock(record.repository):
            return act(self._repository(record.repository), record)

    @contextmanager
    def _act(
        self,
        kind: str,
        record: Record,
        by: str,
        place: Repository | None = None,
        secrets: Iterable[str] = (),
        **facts: Any,
    ) -> Iterator[None]:
        """Record what the block does, with the commit that the branch has then."""
        if place is not None:
            facts["commit"] = place.tip(f"refs/heads/{record.branch}") or None
        told = {
            "session": record.session,
            "worktree": record.name,
            "branch": record.branch,
            "repository": record.repository,
            "folder": record.folder,
            "by": by,
        }
        try:
            with self._acting(kind, {**told, **facts}, secrets):
                yield
        except NotRecorded as error:
            raise WorktreeError(str(error), "not_recorded") from error

    def _require_git(self) -> Program:
        if self._program is None:
            raise WorktreeError(NO_GIT, "no_git")
        return self._program

    def _repository(self, root: str) -> Repository:
        return Repository(self._require_git(), root, self._records.home(root) / ".view", self._enter)

    @contextmanager
    def _git(self, *, needed: bool = True) -> Iterator[None]:
        if needed:
            self._require_git()
        try:
            yield
        except CheckpointError as error:
            raise as_worktree_error(error) from error
        except OSError as error:
            raise WorktreeError(f"{error.filename or 'A file'}: {error.strerror}", "io_failed") from error

    def _remove(
        self,
        repository: Repository | None,
        record: Record,
        only_at: str | None = None,
        *,
        continued: bool = False,
    ) -> None:
        """Folder, link, branch, record, in this order: what a crash leaves is found by its record."""
        with suppress(WorktreeError):  # a full disk must not keep anything from being removed
            self._records.write(msgspec.structs.replace(record, stage="removing"))
        folder = Path(record.folder)
        shutil.rmtree(folder, ignore_errors=True)
        if folder.exists():
            raise WorktreeError(f"{folder} could not be removed: remove it by hand", "io_failed")
        if repository is not None:
            making.remove_link(repository, record)
            ref = f"refs/heads/{record.branch}"
            tip = repository.tip(ref)
            if tip and only_at in (None, tip):
                repository.delete_ref(ref, tip)
        if continued:
            self._records.write(msgspec.structs.replace(record, stage="gone"))
        else:
            self._records.remove(record)


def _age(record: Record) -> float:
    """Seconds since a worktree was made."""
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(record.created)).total_seconds()
    except (ValueError, TypeError):
        return FRESH
