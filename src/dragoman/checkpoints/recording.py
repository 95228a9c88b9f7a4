"""Records projects for sessions, in the quickest way that is certain.

    nothing changed since the session's last checkpoint     its tree again, by a commit that we write
    a few recorded files changed, and all names are known   that tree with those files, written by us
    anything else                                           git compares the project (`capture.py`)

The first two start no process, and are possible only while the project is watched.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from dragoman.checkpoints.capture import Capture, checkpoint_of
from dragoman.checkpoints.history import history, last_turn, message_of
from dragoman.checkpoints.names import shown
from dragoman.checkpoints.objects import trees
from dragoman.checkpoints.objects.commits import store
from dragoman.checkpoints.reading import TooLarge, Tree
from dragoman.checkpoints.repository import Repository, checked
from dragoman.checkpoints.watching.known import Knowledge, Known
from dragoman.gateway.ports.checkpoints import Checkpoint, CheckpointError, Mark

FEW_BYTES = 4 << 20
"""Bytes of changed files that are read here; more is read by way of `git fast-import`, into a pack."""
KNOWN_TURNS = 4096
"""Sessions whose last turn is in memory."""

Marks = Sequence[tuple[Mark, float]]
"""Beginnings and ends of turns, each with its time in seconds since 1970."""


class Recorder:
    def __init__(self, *, watching: bool) -> None:
        self._watching = watching
        self.knowledge = Knowledge()
        self._turns: dict[str, tuple[str, int]] = {}
        """The last commit of each session that was recorded here, and the number of its turn."""

    @contextmanager
    def record(
        self, repository: Repository, capture: Capture, session_id: str, root: str, mark: Mark
    ) -> Iterator[Checkpoint]:
        """Record a project; the checkpoint is there in the block, what is for later checkpoints comes after it."""
        known = self.knowledge.covering(session_id, root, mark)
        if known is not None:
            yield self.append(repository, session_id, known, [(mark, time.time())])
            return
        made = self._first(repository, session_id, root, mark)
        if made is not None:
            yield made
            return
        if mark.kind == "end":  # nothing waits for it
            self._watch(capture, session_id, root)
        before = self.knowledge.last(session_id, root)
        begun = self.knowledge.begin(root)
        if (
            before is not None
            and begun is not None
            and begun[0] is before.watch
            and before.is_recent_for(mark)
        ):
            made = self._patch(repository, session_id, before, mark, capture.largest)
            if made is not None:
                self.knowledge.learn(session_id, root, made, begun, before.compared)
                yield made
                return
        turn = self._last_turn(repository, session_id) + (mark.kind == "begin")
        reference = f"refs/sessions/{checked(session_id)}"
        with capture.take(session_id, mark, turn, reference) as checkpoint:
            self._remember_turn(session_id, checkpoint.id, turn)
            self.knowledge.learn(session_id, root, checkpoint, begun)
            yield checkpoint
        if begun is None:
            self._watch(capture, session_id, root)  # for the checkpoints after this one

    def append(self, repository: Repository, session_id: str, known: Known, marks: Marks) -> Checkpoint:
        """Record beginnings and ends of turns between which nothing changed; returns the last."""
        with self._writing(repository, known):
            return self._commit(repository, session_id, known.checkpoint, known.checkpoint.tree, marks)

    def _first(self, repository: Repository, session_id: str, root: str, mark: Mark) -> Checkpoint | None:
        """Record the beginning of a session's first turn, if another session knows the project; else None."""
        if mark.kind != "begin" or repository.tip(session_id) is not None:
            return None
        known = self.knowledge.of_others(root)
        if known is None or repository.tip(known.session_id) is None:
            return None
        made = self.append(repository, session_id, known, [(mark, time.time())])
        self.knowledge.learn(session_id, root, made, (known.watch, known.generation), known.compared)
        return made

    # -- a few files

    def _patch(
        self, repository: Repository, session_id: str, before: Known, mark: Mark, largest: int
    ) -> Checkpoint | None:
        """Record the last tree with the files changed that events name; None if the project has to be compared.

        `largest`: bytes of the largest file that is recorded.
        """
        names = before.watch.changed_since(before.generation)
        if names is None:
            return None
        last = before.checkpoint
        if last.more_left_out or {shown(name) for name in names} & {left.path for left in last.left_out}:
            return None
        with self._writing(repository, before), trees.reading(repository.git) as recorded:
            changes = _changes(repository, recorded, last.tree, names, largest)
            if changes is None:
                return None
            tree = recorded.changed(last.tree, changes) if changes else last.tree
            if tree is None:
                return None  # no file is left
            return self._commit(repository, session_id, last, tree, [(mark, time.time())])

    # -- commits

    @contextmanager
    def _writing(self, repository: Repository, known: Known) -> Iterator[None]:
        """While objects are written beside a tree that is known; raises if it may be deleted already."""
        with repository.writing(repository.root):
            if repository.tip(known.session_id) is None:
                self.forget(known.session_id)
                raise CheckpointError("The checkpoints of this session were deleted while it works.")
            yield

    def _commit(
        self, repository: Repository, session_id: str, before: Checkpoint, tree: str, marks: Marks
    ) -> Checkpoint:
        turn = self._last_turn(repository, session_id)
        points = []
        for mark, moment in marks:
            turn += mark.kind == "begin"
            points.append(checkpoint_of(mark, turn, moment, before.left_out, before.more_left_out))
        commit = repository.append(session_id, tree, message_of(points))
        self._remember_turn(session_id, commit, turn)
        return msgspec.structs.replace(points[-1], id=commit, tree=tree)

    def _last_turn(self, repository: Repository, session_id: str) -> int:
        """Number of the session's last turn, without a process if it was recorded here."""
        commit, turn = self._turns.get(session_id, ("", 0))
        if commit and repository.tip(session_id) == commit:
            return turn
        return last_turn(history(repository, session_id, 1))

    def _remember_turn(self, session_id: str, commit: str, turn: int) -> None:
        if len(self._turns) >= KNOWN_TURNS:
            self._turns.clear()  # git says them
        self._turns[session_id] = commit, turn

    def _watch(self, capture: Capture, session_id: str, root: str) -> None:
        if self._watching:
            self.knowledge.watch(root, lambda: capture.watch(session_id))

    def forget(self, session_id: str) -> None:
        self.knowledge.forget(session_id)
        self._turns.pop(session_id, None)


def _changes(
    repository: Repository, recorded: trees.Trees, tree: str, names: list[bytes], largest: int
) -> dict[bytes, trees.Entry | None] | None:
    """Each changed file as it is now, stored; None if one of them is not recorded, or not to be read here."""
    changes: dict[bytes, trees.Entry | None] = {}
    room = FEW_BYTES
    with Tree(repository.root) as files:
        for name in names:
            former = recorded.entry(tree, name)
            try:
                if former is None:
                    if files.present(name) is not None:
                        return None  # a new file: git knows whether it is ignored
                    continue
                content = files.read(name, min(room, largest))
            except (OSError, TooLarge):
                return None
            if content is None:
                changes[name] = None
                continue
            room -= len(content.data)
            found = content.mode, bytes.fromhex(store(repository.directory, b"blob", content.data))
            if found != former:
                changes[name] = found
    return changes
