"""Checkpoints of all projects: recording, net changes, restoring, deleting.

Its calls block; `service.py` runs them in threads.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from dragoman.checkpoints import difference
from dragoman.checkpoints.attribution import own_paths, own_states, shared_paths
from dragoman.checkpoints.capture import Capture
from dragoman.checkpoints.git import NO_GIT, find_git
from dragoman.checkpoints.history import history
from dragoman.checkpoints.names import shown
from dragoman.checkpoints.recording import Marks, Recorder
from dragoman.checkpoints.repository import PRIVATE_DIR, Repository, checked, key_of
from dragoman.checkpoints.restoring import PartlyDone, Plan
from dragoman.checkpoints.spans import Span, present_span, span_of
from dragoman.checkpoints.watching.known import Known
from dragoman.config.sections.checkpoints import CheckpointsConfig
from dragoman.gateway.ports.acts import NotRecorded
from dragoman.gateway.ports.checkpoints import (
    Changes,
    Checkpoint,
    CheckpointError,
    Mark,
    Restored,
    Restoring,
    SharedChanges,
    Touched,
    Wish,
)
from dragoman.gateway.ports.worktrees import RecordedTree

RETRY_AFTER = 600.0
"""Seconds until a project that is too large is looked at again: finding out costs a walk through all of it."""
_LASTING = frozenset({"too_many_files", "too_many_bytes"})


class Engine:
    def __init__(self, folder: Path, limits: CheckpointsConfig, *, watching: bool = False) -> None:
        """`folder` is `checkpoints` in the state folder; it is made with the first checkpoint.

        `watching`: notice changes of projects, so that one without changes need not be compared.
        """
        self._folder = folder
        self._limits = limits
        self._program = find_git()
        self._too_large: dict[str, tuple[float, CheckpointError]] = {}
        self._recorder = Recorder(watching=watching)

    @property
    def trouble(self) -> str | None:
        """Why no checkpoints can be made at all; None if they can."""
        return NO_GIT if self._program is None else None

    def stop(self) -> None:
        """End what runs, and begin nothing more."""
        self._recorder.knowledge.close()
        if self._program is not None:
            self._program.stop()

    # -- recording

    @contextmanager
    def record(self, session_id: str, root: str, mark: Mark) -> Iterator[Checkpoint]:
        """Record a project; the checkpoint is there in the block, and its index is brought up to date after it."""
        repository = self._open(root)
        with self._explained(root):
            capture = self._capture(repository, root)
            with self._recorder.record(repository, capture, session_id, root, mark) as checkpoint:
                yield checkpoint

    def unchanged(self, session_id: str, root: str, mark: Mark) -> Known | None:
        """What the session recorded last, if the project is certainly still so; quick, for the event loop too."""
        return self._recorder.knowledge.covering(session_id, root, mark)

    def append(self, session_id: str, root: str, known: Known, marks: Marks) -> None:
        """Record beginnings and ends of turns between which nothing changed."""
        repository = self._open(root)
        with self._explained(root):
            self._recorder.append(repository, session_id, known, marks)

    def prepare(self, session_id: str, root: str) -> None:
        """Read a project that was never recorded, so that the first checkpoint finds only changes."""
        repository = self._open(root)
        if repository.indexed:
            return
        with self._explained(root), self._looking(repository, session_id, 0, keep=True):
            pass

    @contextmanager
    def _looking(
        self, repository: Repository, session_id: str, turn: int, *, keep: bool = False
    ) -> Iterator[Checkpoint]:
        """The present, recorded only for the block."""
        reference = f"refs/looks/{os.getpid()}-{os.urandom(4).hex()}"
        capture = self._capture(repository, repository.root)
        try:
            with capture.look(session_id, turn, reference, keep=keep) as present:
                yield present
        finally:
            (repository.directory / reference).unlink(missing_ok=True)

    def _open(self, root: str) -> Repository:
        """The project's repository, made if need be; raises for folders that are not recorded."""
        if self._program is None:
            raise CheckpointError(NO_GIT, "no_git")
        if root in ("/", os.path.realpath(Path.home())):
            raise CheckpointError(
                f"{root} is no project, so it is not recorded: begin the session in a project's folder.",
                "no_project",
            )
        _check_place(root)
        tried, error = self._too_large.get(root, (0.0, None))
        if error is not None and time.monotonic() - tried < RETRY_AFTER:
            raise error
        repository = Repository(self._program, self._folder / key_of(root))
        with self._explained():
            self._folder.mkdir(PRIVATE_DIR, parents=True, exist_ok=True)
            repository.create(root)
        return repository

    def _capture(self, repository: Repository, root: str) -> Capture:
        _check_place(root)
        return Capture(repository, root, self._limits, self._folder.parent)

    @contextmanager
    def _explained(self, root: str | None = None) -> Iterator[None]:
        """Turn errors of the disk into `CheckpointError`, and remember a project that is too large."""
        try:
            yield
        except CheckpointError as error:
            if error.code in _LASTING and root is not None:
                self._too_large[root] = time.monotonic(), error
            raise
        except OSError as error:
            raise CheckpointError(
                f"Checkpoints cannot be kept in {self._folder}: {error.strerror}", "state_folder"
            ) from error

    # -- looking

    def _find(self, session_id: str) -> Repository:
        if self._program is None:
            raise CheckpointError(NO_GIT, "no_git")
        for reference in self._folder.glob(f"*/refs/sessions/{checked(session_id)}"):
            return Repository(self._program, reference.parents[2])
        raise CheckpointError(
            "There are no checkpoints of this session: it had no turn since they are on, or its folder is not "
            "recorded.",
            "no_checkpoints",
        )

    def latest(self, root: str) -> str | None:
        """The session that was recorded last in a project."""
        if self._program is None:
            raise CheckpointError(NO_GIT, "no_git")
        repository = Repository(self._program, self._folder / key_of(root))
        return repository.latest() if repository.directory.is_dir() else None

    def checkpoints(self, session_id: str) -> list[Checkpoint]:
        return history(self._find(session_id), session_id)

    def recorded(self, session_id: str, turn: int) -> RecordedTree:
        """The files at the beginning of a turn."""
        repository = self._find(session_id)
        begun = [
            point for point in history(repository, session_id) if (point.kind, point.turn) == ("begin", turn)
        ]
        if not begun:
            raise CheckpointError(f"There is no checkpoint of turn {turn}.", "no_turn")
        left_out = frozenset(entry.path for entry in begun[0].left_out)
        return RecordedTree(str(repository.directory), begun[0].tree, begun[0].time, left_out)

    def changes(self, session_id: str, turn: int | None = None) -> Changes:
        """What the session changed from its first turn on, or one turn."""
        repository = self._find(session_id)
        with self._span(repository, session_id, turn) as span:
            shared = shared_paths(repository, session_id, span.chain, span.running)
            files = difference.changes(repository.git, span.since.tree, span.until.tree, shared)
        unheld = {each.path: each for each in (*span.since.left_out, *span.until.left_out)}
        return Changes(
            session=session_id,
            since=span.since,
            until=span.until,
            running=span.running,
            files=[each for each in files if each.path not in unheld],
            left_out=list(unheld.values()),
            more_left_out=max(span.since.more_left_out, span.until.more_left_out),
        )

    def patch(self, session_id: str, turn: int | None = None) -> bytes:
        repository = self._find(session_id)
        with self._span(repository, session_id, turn) as span:
            return difference.patch(repository.git, span.since.tree, span.until.tree)

    def touched(self, session_id: str, turn: int | None = None) -> Touched:
        """The paths that turns of the session changed, and which of them others changed too, up to now."""
        repository = self._find(session_id)
        chain = history(repository, session_id)
        span = span_of(chain, turn)
        first = next(number for number, point in enumerate(chain) if point.id == span.since.id)
        with self._looking(repository, session_id, span.since.turn) as present:
            running = chain[-1].kind == "begin"
            whole = [*chain[first:], present]
            own = own_paths(repository, whole, turn)
            shared = shared_paths(repository, session_id, whole, running)
            states = own_states(repository, session_id, [*chain, present], running)
        return Touched(repository.root, own, own & shared, {path: states.get(path, set()) for path in own})

    @contextmanager
    def _span(self, repository: Repository, session_id: str, turn: int | None) -> Iterator[Span]:
        """The checkpoints to compare; the present stands for the end of a turn that runs."""
        span = span_of(history(repository, session_id), turn)
        if not span.running:
            yield span
            return
        with self._looking(repository, session_id, span.since.turn) as present:
            yield present_span(span, present)

    # -- restoring

    def restore(
        self,
        session_id: str,
        root: str,
        wish: Wish,
        told: Callable[[Restored], None],
        act: Restoring = lambda before, files: nullcontext(),
    ) -> Restored:
        """Undo what the wish names, under `act`; `told` is called before the index is brought up to date."""
        repository = self._find(session_id)
        if repository.root != root:
            raise CheckpointError(
                f"The session works in {root}, its checkpoints are of {repository.root}: nothing was restored.",
                "other_folder",
            )
        chain = history(repository, session_id)
        _check_wish(wish)
        operation = {name: value for name, value in _asked(wish).items() if value is not None}
        with self.record(session_id, root, Mark("before", operation=operation)) as before:
            pass
        plan, left = self._plan(repository, session_id, wish, [*chain, before])
        failed: PartlyDone | None = None
        try:
            with act(before.id, [shown(step.path) for step in plan.steps]):
                files = plan.carry_out(root)
        except PartlyDone as error:
            files, failed = error.done, error
        except NotRecorded as error:
            raise CheckpointError(str(error), "not_recorded") from error
        with self.record(session_id, root, Mark("after", operation=operation)) as after:
            restored = Restored(before.id, after.id, files, [*left, *plan.kept])
            if failed is None:
                told(restored)
        if failed is not None:
            raise failed
        return restored

    def _plan(
        self, repository: Repository, session_id: str, wish: Wish, chain: list[Checkpoint]
    ) -> tuple[Plan, list[str]]:
        """What to do, and which shared files are left."""
        span = _span_for(wish, chain)
        files = difference.raw(repository.git, span.since.tree, span.until.tree)
        if wish.file is not None:
            files = self._of_file(repository, span, wish.file)
        shared = set() if wish.undo else shared_paths(repository, session_id, span.chain, span.running)
        touched = sorted(shown(one.path) for one in files if one.path in shared)
        if touched and wish.shared == "refuse":
            raise SharedChanges(touched)
        left = touched if wish.shared == "leave" else []
        plan = Plan(repository.git, span.since, span.until, chain[-1])
        plan.undo([one for one in files if shown(one.path) not in left], wish.hunk)
        return plan, left

    def _of_file(self, repository: Repository, span: Span, name: str) -> list[difference.Raw]:
        """The change of one file; of a renamed one both names, unless one hunk is meant."""
        git, since, until = repository.git, span.since.tree, span.until.tree
        renamed = [
            one.old_path for one in difference.raw(git, since, until, renames=True) if shown(one.path) == name
        ]
        names = {shown(path) for path in renamed} | {name}
        found = [one for one in difference.raw(git, since, until) if shown(one.path) in names]
        if not found:
            raise CheckpointError(f"{name} did not change.", "no_change")
        return found

    # -- deleting

    def delete(self, session_id: str) -> None:
        """Remove the checkpoints of a session, and the objects that no other session needs."""
        if self._program is None:
            return
        self._recorder.forget(session_id)
        for reference in list(self._folder.glob(f"*/refs/sessions/{checked(session_id)}")):
            repository = Repository(self._program, reference.parents[2])
            with self._explained():
                repository.forget(session_id)
                repository.collect()


def _check_place(root: str) -> None:
    """Raise for a folder that leads elsewhere by now, and for a bare repository."""
    if os.path.realpath(root) != root:
        raise CheckpointError(
            f"{root} is a symlink now, or below one, so nothing there is recorded or restored: put the folder back.",
            "other_folder",
        )
    if _stat_mode(f"{root}/HEAD", stat.S_ISREG) and all(
        _stat_mode(f"{root}/{name}", stat.S_ISDIR) for name in ("objects", "refs")
    ):
        raise CheckpointError(
            f"{root} is a bare repository, without files to work on, so it is not recorded: clone it first.",
            "bare_repository",
        )


def _stat_mode(path: str, is_kind: Callable[[int], bool]) -> bool:
    try:
        return is_kind(os.lstat(path).st_mode)
    except OSError:
        return False


def _check_wish(wish: Wish) -> None:
    if wish.hunk is not None and wish.file is None:
        raise CheckpointError("A hunk is chosen together with its file.", "bad_wish")


def _asked(wish: Wish) -> dict[str, object]:
    return {
        "turn": wish.turn,
        "file": wish.file,
        "hunk": wish.hunk,
        "to": wish.to,
        "undo": wish.undo or None,
        "shared": wish.shared if wish.shared != "refuse" else None,
    }


def _span_for(wish: Wish, chain: list[Checkpoint]) -> Span:
    """The checkpoints between which everything is undone; the last of `chain` is the present."""
    if wish.undo:
        return _last_operation(chain)
    if wish.to is not None:
        begun = [
            number for number, point in enumerate(chain) if point.kind == "begin" and point.turn == wish.to
        ]
        if not begun:
            raise CheckpointError(f"There is no checkpoint of turn {wish.to}.", "no_turn")
        return Span(chain[begun[0]], chain[-1], chain[begun[0] :])
    interrupted = chain[-2].kind == "begin"  # its end was not recorded: the present stands for it
    return span_of(chain if interrupted else chain[:-1], wish.turn)


def _last_operation(chain: list[Checkpoint]) -> Span:
    """The last restore that was not undone, and is no undo itself."""
    undone = 0
    for number in range(len(chain) - 2, 0, -1):
        before, after = chain[number - 1], chain[number]
        if (before.kind, after.kind) != ("before", "after"):
            continue
        if "undo" in after.operation:
            undone += 1
        elif undone:
            undone -= 1
        else:
            return Span(before, after, [before, after])
    raise CheckpointError("There is nothing to undo.", "nothing_to_undo")
