"""All worktrees of a state folder; blocking, for threads and commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from dragoman.config.sections.worktrees import WorktreesConfig
from dragoman.gateway.ports.worktrees import (
    BoxChoice,
    Made,
    RecordedTree,
    WorktreeError,
    WorktreeWish,
)
from dragoman.masking import mask_assigned
from dragoman.worktrees import forking, making
from dragoman.worktrees.ends import LOCAL, Ends
from dragoman.worktrees.names import BRANCHES, LONGEST, check_name, in_the_way, name_of
from dragoman.worktrees.records import Record
from dragoman.worktrees.repository import Repository


class Engine(Ends):
    """Makes worktrees."""

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
            with self._making(repository, record, by, _secrets(settings.setup)):
                notices = self._fill(repository, record, wish, settings, by)
        made = _made(record, Path(cwd).relative_to(root), notices)
        return msgspec.structs.replace(made, waits=bool(settings.setup) and not wish.setup)

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
        source = self._of_session(original)
        if source is None:
            return None
        self._present(source)
        with self._git(), self._records.lock(source.repository):
            repository = self._repository(source.repository)
            base = forking.starting_commit(repository, source, recorded)
            name = self._free_name(repository, wish, source.name[: LONGEST - 4])
            record = self._new_record(repository, name, session_id, base, box=box, into=source.into)
            with self._making(repository, record, by):
                notices = self._fill_fork(repository, record, source, recorded)
        return _made(record, Path(cwd).relative_to(source.folder), notices)

    def again(
        self, session_id: str, folder: str, settings_for: Callable[[Path], WorktreesConfig]
    ) -> list[str]:
        """Make the worktree of a session again if it was removed; returns what there is to tell."""
        record = self._of_session(session_id)
        if record is None:
            raise WorktreeError(
                f"The worktree {folder} of this session was removed, and its name may be in use again: begin a "
                "new session",
                "worktree_gone",
            )
        if record.stage == "ready" and Path(record.folder).is_dir():
            return []
        with self._git(), self._records.lock(record.repository):
            repository = self._repository(record.repository)
            begin = repository.tip(f"refs/heads/{record.branch}")
            base = (
                begin
                or (repository.tip(f"refs/heads/{record.into}") if record.into else "")
                or repository.head()
            )
            repository.check_supported(base)
            making.remove_link(repository, record)
            fresh = msgspec.structs.replace(
                record, stage="making", copied=[], base=record.base if begin else base
            )
            with self._act("worktree_made", fresh, LOCAL, commit=base):
                self._records.write(fresh)
                making.make(self._require_git(), repository, fresh, base)
                names = settings_for(Path(record.repository)).copy
                copied, notices = making.copy_files(record.repository, record.folder, names)
                self._records.write(msgspec.structs.replace(fresh, copied=copied, stage="ready"))
        origin = record.branch if begin else record.into or "the present commit"
        told = (
            f"The worktree {record.name} of this session had been removed. It was made again, from {origin}."
        )
        return [told, *notices]

    @contextmanager
    def _making(
        self, repository: Repository, record: Record, by: str, secrets: Iterable[str] = ()
    ) -> Iterator[None]:
        """Write the record of a worktree that the block makes; what a failure leaves is removed."""
        repository.check_room(record.base, self._records.folder)
        with self._act("worktree_made", record, by, secrets=secrets, commit=record.base):
            self._records.write(record)
            try:
                yield
            except BaseException:
                self._remove(repository, record, only_at=record.base)
                raise

    def _fill_fork(
        self, repository: Repository, record: Record, source: Record, recorded: RecordedTree | None
    ) -> list[str]:
        program = self._require_git()
        if recorded is None:
            with forking.changed_files(repository, source) as changed:
                making.make(program, repository, record)
                notices = forking.copy_present(source, changed(), record.folder)
        else:
            index, notices = making.make(program, repository, record), []
            forking.write_recorded(repository.view(), record.base, recorded, index, record.folder)
        self._records.write(msgspec.structs.replace(record, copied=source.copied, stage="ready"))
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
        making.make(self._require_git(), repository, record)
        copied, notices = making.copy_files(record.repository, record.folder, settings.copy)
        self._records.write(msgspec.structs.replace(record, copied=copied, stage="ready"))
        if settings.setup and wish.setup:
            self._set_up(record, settings.setup, by)
        return notices

    def setup_lines(self, session_id: str, settings_for: Callable[[Path], WorktreesConfig]) -> list[str]:
        record = self._of_session(session_id)
        return settings_for(Path(record.repository)).setup if record is not None else []

    def set_up(self, session_id: str, lines: list[str], by: str) -> None:
        """Run commands that were approved, in the worktree of a session."""
        record = self._of_session(session_id)
        if record is None:
            raise WorktreeError("The session has no worktree any more", "worktree_gone")
        with self._git():
            self._set_up(self._present(record), lines, by)

    def _set_up(self, record: Record, lines: list[str], by: str) -> None:
        commands = [mask_assigned(line)[0] for line in lines]
        with self._act("worktree_setup", record, by, secrets=_secrets(lines), commands=commands):
            making.run_setup(lines, record, self._enter)

    def _of_session(self, session_id: str) -> Record | None:
        return next((record for record in self._records.all() if record.session == session_id), None)

    def _free_name(self, repository: Repository, wish: WorktreeWish, base: str) -> str:
        taken = {record.name: record for record in self._records.all(repository.root)}
        branches = repository.branches(BRANCHES.rstrip("/"))
        if wish.name is not None:
            name = check_name(wish.name)
            if name in taken and taken[name].stage != "gone":
                raise WorktreeError(
                    f"There is a worktree {name} of {repository.root} already: go on with its session, or take "
                    "another name",
                    "name_taken",
                )
            if in_the_way(branches, BRANCHES + name):
                raise WorktreeError(
                    f"There is a branch {BRANCHES}{name}, or one that excludes it, in {repository.root} already: take "
                    "another name, or remove it",
                    "branch_exists",
                )
            return name
        for number in range(1, 1000):
            name = base if number == 1 else f"{base}-{number}"
            if name not in taken and not in_the_way(branches, BRANCHES + name):
                return name
        raise WorktreeError(f"There are a thousand worktrees {base} already: give a name", "name_taken")


def _secrets(lines: Iterable[str]) -> list[str]:
    """The values of variables in commands: the audit has neither them nor errors that repeat them."""
    return [value for line in lines for value in mask_assigned(line)[1]]


def _made(record: Record, inside: Path, notices: list[str]) -> Made:
    """The answer for a session that was started in the folder `inside` of the repository."""
    inner = Path(record.folder, inside)
    place = str(inner) if inner.is_dir() else record.folder
    return Made(record.name, record.folder, record.repository, record.branch, place, notices)
