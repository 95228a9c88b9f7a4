"""All worktrees of a state folder; blocking, for threads and commands."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from dragoman.checkpoints.git import find_git
from dragoman.config.sections.worktrees import WorktreesConfig
from dragoman.gateway.ports.acts import Acting, NotRecorded, unrecorded
from dragoman.gateway.ports.checkpoints import CheckpointError
from dragoman.gateway.ports.worktrees import (
    BoxChoice,
    Cleaned,
    Made,
    Merged,
    RecordedTree,
    Worktree,
    WorktreeError,
    WorktreeWish,
)
from dragoman.masking import mask_assigned
from dragoman.worktrees import forking, making, merging
from dragoman.worktrees.boxed import Enter
from dragoman.worktrees.names import BRANCHES, LONGEST, check_name, name_of
from dragoman.worktrees.records import Record, Records
from dragoman.worktrees.repository import Repository, as_worktree_error
from dragoman.worktrees.status import describe

LOCAL = "local"
"""The identity of commands on this machine."""
NO_GIT = "There is no program `git` on the PATH, so there are no worktrees: install git"


class Engine:
    def __init__(self, folder: Path, acting: Acting = unrecorded, enter: Enter | None = None) -> None:
        """`acting` records what is done, before it is; `by` is the identity that asked for it.

        `enter` runs commands in the boxes of sessions; without it clones cannot be looked at.
        """
        self._enter = enter
        self._records = Records(folder)
        self._acting = acting
        self._program = find_git()

    # -- make

    def create(
        self,
        session_id: str | None,
        root: str,
        cwd: str,
        wish: WorktreeWish,
        settings: WorktreesConfig,
        *,
        box: BoxChoice | None,
        by: str = LOCAL,
    ) -> Made:
        """A worktree of the repository at `root`, for a session in its folder `cwd`."""
        with self._git(), self._records.lock(root):
            repository = self._repository(root)
            base = repository.head()
            repository.check_supported(base)
            name = self._free_name(repository, wish, name_of(wish.title))
            record = self._new_record(repository, name, session_id, base, box=box, into=repository.branch)
            with self._making(repository, record, by):
                notices = self._fill(repository, record, wish, settings, by)
        return _made(record, Path(cwd).relative_to(root), notices)

    def fork(
        self,
        session_id: str,
        original: str,
        cwd: str,
        wish: WorktreeWish,
        recorded: RecordedTree | None,
        *,
        box: BoxChoice | None,
        by: str = LOCAL,
    ) -> Made | None:
        """A worktree with the files of the one that another session has; None if that has none."""
        found = [record for record in self._records.all() if record.session == original]
        if not found:
            return None
        source = self._present(found[0])
        with self._git(), self._records.lock(source.repository):
            repository = self._repository(source.repository)
            base = forking.starting_commit(repository, source, recorded)
            name = self._free_name(repository, wish, source.name[: LONGEST - 4])
            record = self._new_record(repository, name, session_id, base, box=box, into=source.into)
            with self._making(repository, record, by):
                notices = self._fill_fork(repository, record, source, recorded)
        return _made(record, Path(cwd).relative_to(source.folder), notices)

    @contextmanager
    def _making(self, repository: Repository, record: Record, by: str) -> Iterator[None]:
        """Write the record of a worktree that the block makes; what a failure leaves is removed."""
        with self._act("worktree_made", record, by, commit=record.base):
            self._records.write(record)
            try:
                yield
            except BaseException:
                self._remove(repository, record, only_at=record.base)
                raise

    def _fill_fork(
        self, repository: Repository, record: Record, source: Record, recorded: RecordedTree | None
    ) -> list[str]:
        assert self._program is not None
        index, view = making.make(self._program, repository, record), repository.view()
        notices: list[str] = []
        if recorded is None:
            notices = forking.copy_present(repository, source, record.folder)
        else:
            forking.write_recorded(view, record.base, recorded, index, record.folder)
        forking.refresh(view, index, record.folder)
        self._records.write(msgspec.structs.replace(record, copied=source.copied, ready=True))
        return notices

    def _new_record(
        self,
        repository: Repository,
        name: str,
        session_id: str | None,
        base: str,
        *,
        box: BoxChoice | None,
        into: str,
    ) -> Record:
        return Record(
            name=name,
            repository=repository.root,
            folder=str(self._records.home(repository.root) / name),
            branch=BRANCHES + name,
            form="clone" if box is not None else "linked",
            base=base,
            into=into,
            session=session_id,
            agent=box.agent if box is not None else "",
            sandbox=box.sandbox if box is not None else "",
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def _fill(
        self, repository: Repository, record: Record, wish: WorktreeWish, settings: WorktreesConfig, by: str
    ) -> list[str]:
        assert self._program is not None
        making.make(self._program, repository, record)
        copied, notices = making.copy_files(record.repository, record.folder, settings.copy)
        self._records.write(msgspec.structs.replace(record, copied=copied, ready=True))
        if settings.setup and record.form == "clone":
            notices.append(
                "The commands of worktrees.setup were not run: they do not run outside of a sandbox."
            )
        elif settings.setup and not wish.setup:
            notices.append(
                "The commands of worktrees.setup were not run, since they were not approved: "
                + "; ".join(settings.setup)
            )
        elif settings.setup:
            masked = [mask_assigned(line) for line in settings.setup]
            secrets = [value for _, values in masked for value in values]
            with self._act(
                "worktree_setup", record, by, secrets=secrets, commands=[line for line, _ in masked]
            ):
                making.run_setup(settings.setup, record.folder)
        return notices

    def _free_name(self, repository: Repository, wish: WorktreeWish, base: str) -> str:
        taken = {record.name for record in self._records.all(repository.root)}
        if wish.name is not None:
            name = check_name(wish.name)
            if name in taken:
                raise WorktreeError(
                    f"There is a worktree {name} of {repository.root} already: go on with its session, or take "
                    "another name",
                    "name_taken",
                )
            if repository.branch_in_the_way(BRANCHES + name):
                raise WorktreeError(
                    f"There is a branch {BRANCHES}{name}, or one that excludes it, in {repository.root} already: take "
                    "another name, or remove it",
                    "branch_exists",
                )
            return name
        for number in range(1, 1000):
            name = base if number == 1 else f"{base}-{number}"
            if name not in taken and not repository.branch_in_the_way(BRANCHES + name):
                return name
        raise WorktreeError(f"There are a thousand worktrees {base} already: give a name", "name_taken")

    # -- look

    def all(self, repository: str | None = None) -> list[Worktree]:
        return [self._described(record) for record in self._records.all(repository)]

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
        self, name: str, repository: str | None, message: str | None, into: str | None, by: str = LOCAL
    ) -> Merged:
        def act(place: Repository, record: Record) -> Merged:
            with self._act("worktree_merged", record, by, place, into=into or record.into):
                return merging.merge(place, record, message, into)

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
            self._discard(record, found.loses, "discarded", by)
            return found

    def _discard(self, record: Record, loses: str, why: str, by: str) -> None:
        try:
            with self._git():
                place: Repository | None = self._repository(record.repository)
        except WorktreeError:
            place = None
        with (
            self._git(needed=False),
            self._act("worktree_discarded", record, by, place, loses=loses, why=why),
        ):
            self._remove(place, record)

    def clean(self, live: list[str], by: str = LOCAL) -> Cleaned:
        removed, left = [], {}
        for record in list(self._records.all()):
            with self._records.lock(record.repository):
                if not self._records.file(record).exists():
                    continue
                found = self._described(record)
                why = self._stays(found, live)
                if why:
                    left[record.name] = why
                    continue
                self._discard(record, found.loses, "clean", by)
                removed.append(record.name)
        for folder in list(self._records.orphans()):  # made by hand, or its record was lost
            left[folder.name] = f"{folder} belongs to no known worktree: look at it, then remove it by hand"
        return Cleaned(removed, left)

    def _stays(self, found: Worktree, live: list[str]) -> str:
        if found.kept:
            return "it is kept"
        if found.session in live and found.state == "ready":
            return f"the session {found.session} uses it"
        return found.loses

    def session_deleted(self, session_id: str, by: str = LOCAL, *, discard: bool = False) -> Worktree | None:
        """Remove the worktrees of a deleted session; returns one that stays because it would lose something."""
        stays = None
        for record in list(self._records.all()):
            if record.session != session_id:
                continue
            with self._records.lock(record.repository):
                found = self._described(record)
                if (found.loses or found.kept) and not discard:
                    stays = found
                    self._records.write(msgspec.structs.replace(record, session=None))
                else:
                    self._discard(record, found.loses, "session deleted", by)
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

    def _repository(self, root: str) -> Repository:
        if self._program is None:
            raise WorktreeError(NO_GIT, "no_git")
        return Repository(self._program, root, self._records.home(root) / ".view", self._enter)

    @contextmanager
    def _git(self, *, needed: bool = True) -> Iterator[None]:
        if self._program is None and needed:
            raise WorktreeError(NO_GIT, "no_git")
        try:
            yield
        except CheckpointError as error:
            raise as_worktree_error(error) from error
        except OSError as error:
            raise WorktreeError(f"{error.filename or 'A file'}: {error.strerror}", "io_failed") from error

    def _remove(self, repository: Repository | None, record: Record, only_at: str | None = None) -> None:
        """Folder, link, branch, record, in this order: what a crash leaves is found by its record."""
        folder = Path(record.folder)
        shutil.rmtree(folder, ignore_errors=True)
        if folder.exists():
            raise WorktreeError(f"{folder} could not be removed: remove it by hand", "io_failed")
        if repository is not None:
            admin = making.admin_folder(repository, record)
            if admin is not None:
                shutil.rmtree(admin, ignore_errors=True)
            ref = f"refs/heads/{record.branch}"
            tip = repository.tip(ref)
            if tip and only_at in (None, tip):
                repository.delete_ref(ref, tip)
        self._records.remove(record)


def _made(record: Record, inside: Path, notices: list[str]) -> Made:
    """The answer for a session that was started in the folder `inside` of the repository."""
    inner = Path(record.folder, inside)
    place = str(inner) if inner.is_dir() else record.folder
    return Made(record.name, record.folder, record.repository, record.branch, place, notices)
