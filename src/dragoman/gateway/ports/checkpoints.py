"""The interface to checkpoints: a session's project as it was at the beginning and end of each turn.

Paths are shown with invalid UTF-8 as `\\xNN`, so that every path has a name in JSON; the same name chooses it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal

from msgspec import Struct

from dragoman.gateway.ports.worktrees import RecordedTree

Kind = Literal["begin", "end", "before", "after"]
"""Beginning and end of a turn; before and after files were restored."""
Status = Literal["added", "deleted", "modified", "renamed", "type_changed"]
Shared = Literal["refuse", "include", "leave"]
"""What a restore does with changes that are not the session's alone."""


FileState = tuple[str, str] | None
"""Mode and git object (SHA-1) of a file; None where there is none."""


class CheckpointError(Exception):
    """A checkpoint could not be made or read, or files not restored; the text says why and what to do."""

    def __init__(self, message: str, code: str = "checkpoint") -> None:
        super().__init__(message)
        self.code = code


class SharedChanges(CheckpointError):
    """A restore would undo, or a commit take, changes that are not the session's alone."""

    def __init__(self, paths: list[str], act: str = "undo") -> None:
        shown = ", ".join(paths[:5]) + (f" and {len(paths) - 5} more" if len(paths) > 5 else "")
        super().__init__(
            f"Not only this session changed {shown}: say whether to {act} these changes too, or to leave them",
            "shared_changes",
        )
        self.paths = paths


@dataclass(slots=True)
class Mark:
    """What a checkpoint is of; the gateway sets `late` while it is being made, if the agent works already."""

    kind: Kind
    title: Callable[[], str] = str
    """Gives the beginning of the message that began the turn; called in any thread, when the checkpoint is written."""
    late: bool = False
    after: int = 0
    """For `begin`: the journal's last event before the turn's message."""
    operation: dict[str, Any] | None = None
    """For `before` and `after`: what was asked for."""


class LeftOut(Struct, frozen=True):
    """A path that a checkpoint does not hold."""

    path: str
    reason: Literal["too_large", "unreadable", "repository", "filter"]
    size: int = 0


class Checkpoint(Struct, frozen=True, omit_defaults=True):
    """The recorded state of the files at one moment."""

    id: str
    tree: str
    kind: Kind
    turn: int
    """Number of the turn, counted from 1; for `before` and `after` that of the last turn."""
    time: str
    title: str = ""
    late: bool = False
    after: int = 0
    """The journal's last event before the turn's message; 0 if it is not known."""
    left_out: list[LeftOut] = []
    more_left_out: int = 0
    operation: dict[str, Any] = {}


class Hunk(Struct, frozen=True, rename="camel"):
    """One piece of a change; its number is its place in the file, from 1."""

    number: int
    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    text: str
    """The lines of a unified diff, with the line that begins with `@@`; invalid UTF-8 is replaced."""


class Change(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What happened to one file between two checkpoints."""

    path: str
    status: Status
    added: int = 0
    removed: int = 0
    old_path: str | None = None
    """Of a renamed file."""
    old_mode: str | None = None
    new_mode: str | None = None
    binary: bool = False
    submodule: bool = False
    """It is a repository of its own; its commits are compared, and not its files."""
    shared: bool = False
    """Not only this session's: another session, or something outside of its turns, changed it too."""
    hunks: list[Hunk] = []
    truncated: bool = False
    """There are more hunks than are listed; the patch has all."""


class Changes(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What changed between two checkpoints of a session."""

    session: str
    since: Checkpoint
    until: Checkpoint
    running: bool = False
    """`until` is the present: a turn runs, or did not end."""
    files: list[Change] = []
    left_out: list[LeftOut] = []
    more_left_out: int = 0


@dataclass(frozen=True)
class Touched:
    """Paths that turns of a session changed, below the folder of its project."""

    folder: str
    paths: set[bytes]
    shared: set[bytes]
    """Those that not only the session changed, as far as its checkpoints show."""
    states: dict[bytes, set[FileState]] = field(default_factory=dict)
    """What each path was at checkpoints since which only the session changed it; a commit on top of one is its alone."""


class Wish(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Which files to restore: a hunk, a file, a turn, all of a session, to a message, or what was restored last."""

    turn: int | None = None
    file: str | None = None
    hunk: int | None = None
    to: int | None = None
    """Number of the turn to whose beginning the files go back."""
    undo: bool = False
    shared: Shared = "refuse"


class Restored(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a restore did."""

    before: str
    after: str
    files: list[str] = []
    left: list[str] = []
    """Files with changes that are not the session's alone, which were left as they are."""


Restoring = Callable[[str, list[str]], AbstractContextManager[None]]
"""Entered, in a thread, before files are changed: the checkpoint before it, and the files. May raise `NotRecorded`."""


OFF = "Checkpoints are off (checkpoints.enabled)."


class Checkpoints:
    """Records nothing by itself; `checkpoints/service.py` does."""

    def records(self, folder: str) -> bool:
        """Whether a project is recorded, as far as known without looking at it."""
        return False

    def restoring(self, session_id: str) -> bool:
        """Whether files of the session are being restored, so that no turn may begin."""
        return False

    async def prepare(self, session_id: str, folder: str) -> None:
        """Read a project for the first time, so that its first checkpoint is quick; raises `CheckpointError`."""

    def record(self, session_id: str, folder: str, mark: Mark) -> Awaitable[Checkpoint]:
        """Record a project, after what was called before for this session; raises `CheckpointError`."""
        raise CheckpointError(OFF, "checkpoints_off")

    def record_unchanged(
        self, session_id: str, folder: str, mark: Mark, failed: Callable[[CheckpointError], None]
    ) -> bool:
        """Record a project that certainly did not change since the session's last checkpoint; does not block.

        False: that is not certain, so `record` has to compare it. `failed` is called if it cannot be written later.
        """
        return False

    async def checkpoints(self, session_id: str) -> list[Checkpoint]:
        """The session's checkpoints, the oldest first; raises `CheckpointError`."""
        raise CheckpointError(OFF, "checkpoints_off")

    async def recorded(self, session_id: str, turn: int) -> RecordedTree:
        """The files at the beginning of a turn; raises `CheckpointError`."""
        raise CheckpointError(OFF, "checkpoints_off")

    async def changes(self, session_id: str, turn: int | None = None) -> Changes:
        """What the session, or one turn of it, changed; raises `CheckpointError`."""
        raise CheckpointError(OFF, "checkpoints_off")

    async def patch(self, session_id: str, turn: int | None = None) -> bytes:
        """The same as a patch that `git apply` takes."""
        raise CheckpointError(OFF, "checkpoints_off")

    async def touched(self, session_id: str, turn: int | None = None) -> Touched:
        """The paths that the session's turns, or one of them, changed; raises `CheckpointError`."""
        raise CheckpointError(OFF, "checkpoints_off")

    def restore(self, session_id: str, folder: str, wish: Wish, act: Restoring) -> Awaitable[Restored]:
        """Restore files under `act`; raises `CheckpointError` and changes nothing if it cannot restore all.

        From this call on `restoring` is true, and another call raises at once.
        """
        raise CheckpointError(OFF, "checkpoints_off")

    async def delete(self, session_id: str) -> None:
        """Remove the checkpoints of a session that is deleted."""
