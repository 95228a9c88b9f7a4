"""git on the clone of a boxed session, inside its box; outside, what it prints is data.

A clone belongs to an agent that may have written anything into it: settings that name programs, objects that point
elsewhere, links. So git reads it where the agent runs, with the agent's rights. Three things come out:

    state   head, branch, other tips, names of changed files    bounded and checked here
    pack    the objects of commits                              `index-pack --strict` checks each, then all are walked
    exit code

The commands get their words as arguments: nothing can be written to a command in a box.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO

from dragoman.gateway.ports.checkpoints import CheckpointError
from dragoman.gateway.ports.worktrees import WorktreeError
from dragoman.worktrees.git import OFF, View, is_id
from dragoman.worktrees.records import Record

Enter = Callable[[Record, Sequence[str], Mapping[str, str], int], int]
"""Runs a command in the box of a record, in its folder, with its output on a descriptor; returns the exit code."""

LARGEST_STATE = 32 << 20
LARGEST_PACK = 2 << 30
LONGEST_MESSAGE = 64 << 10
MOST_COMMITS = 10_000
NO_PROGRAM = 127
TOLD = 500

STATE = (
    "exec 2>/dev/null; command -v git >/dev/null || exit 127; "
    "{ git rev-parse -q --verify HEAD^{commit} || exit; git symbolic-ref -q HEAD || echo; "
    f'git rev-list --max-count={MOST_COMMITS} --all HEAD --not "$1" || exit; echo; '
    "git status --porcelain=v1 -z --no-renames --untracked-files=all --ignore-submodules=none "
    f"|| exit; echo complete; }} | head -c {LARGEST_STATE}"
)
PACK = f'exec 2>/dev/null; printf "%s\\n" "$@" | git pack-objects --revs --stdout -q | head -c {LARGEST_PACK}'
COMMIT_SOME = (
    "exec 2>&1; export GIT_LITERAL_PATHSPECS=1; message=$1; shift; "
    'git add -A -- "$@" && git commit -q --no-verify --only -m "$message" -- "$@"'
)
COMMIT = 'exec 2>&1; message=$1; shift; git add -A -- . "$@" && git commit -q --no-verify -m "$message"'


@dataclass(frozen=True)
class CloneState:
    """What a clone has, as git in its box says."""

    commit: str
    branch: str
    """The branch that is checked out; empty for none."""
    own: frozenset[str]
    """Commits that it has besides the history that it began with."""
    changed: list[bytes]
    """Paths that differ from the commit; one that ends with `/` is a repository of its own."""


class Clone:
    """The clone of a record."""

    def __init__(self, record: Record, enter: Enter | None) -> None:
        self._record = record
        self._enter = enter

    def state(self) -> CloneState:
        with self._run(STATE, self._record.base) as printed:
            text = printed.read(LARGEST_STATE + 1)
        try:
            return self._parsed(text)
        except ValueError as error:
            raise WorktreeError(
                f"git cannot read {self._record.folder} in its sandbox: it may be damaged, or too large",
                "clone_unreadable",
            ) from error

    def _parsed(self, text: bytes) -> CloneState:
        head, branch, rest = text.split(b"\n", 2)
        own, _, status = (b"\n" + rest).partition(b"\n\n")
        if not status.endswith(b"complete\n"):
            raise ValueError("cut off")
        commits = frozenset(_id(row) for row in own.split(b"\n") if row)
        rows = status.removesuffix(b"complete\n").split(b"\0")
        copied = {os.fsencode(name) for name in self._record.copied}
        changed = sorted({row[3:] for row in rows if row} - copied)
        name = branch.decode().removeprefix("refs/heads/")
        return CloneState(_id(head), name, commits, changed)

    def commit(self, message: str, author: tuple[str, str], names: Sequence[str] = ()) -> None:
        """Commit these files, or all except those that were copied into it."""
        if len(message) > LONGEST_MESSAGE:
            raise WorktreeError(f"The message is longer than {LONGEST_MESSAGE >> 10} KB", "bad_message")
        excluded = [f":(exclude,top,literal){name}" for name in self._record.copied]
        script, words = (COMMIT_SOME, names) if names else (COMMIT, excluded)
        with self._run(script, message, *words, author=author):
            pass

    def send(self, target: View, commits: Sequence[str]) -> None:
        """Copy commits and their history into a repository, each object checked."""
        size = f"--max-input-size={LARGEST_PACK}"
        with (
            self._run(PACK, *commits, f"^{self._record.base}") as pack,
            target.started("index-pack", "--stdin", "--strict", size) as running,
        ):
            assert running.process.stdin is not None and running.process.stdout is not None
            with suppress(BrokenPipeError):  # its exit code says so
                shutil.copyfileobj(pack, running.process.stdin)
                running.process.stdin.close()
            running.process.stdout.read()
        try:
            running.check()
            target.run("rev-list", "--objects", "--quiet", *commits, f"^{self._record.base}")
        except CheckpointError as error:
            raise WorktreeError(
                f"The commits in {self._record.folder} are not complete or not valid: {error}", "bad_objects"
            ) from error

    @contextmanager
    def _run(self, script: str, *words: str, author: tuple[str, str] = ("", "")) -> Iterator[IO[bytes]]:
        """Run a script in the box; in the block there is what it printed."""
        name, enter = self._record.name, self._enter
        if enter is None:
            raise WorktreeError(
                f"{name} belongs to a boxed session, and there is no sandbox here to look at it", "no_box"
            )
        with tempfile.TemporaryFile() as printed:
            command = ["sh", "-c", script, "dragoman", *words]
            code = enter(self._record, command, _environment(author), printed.fileno())
            printed.seek(0)
            if code == NO_PROGRAM:
                raise WorktreeError(f"There is no git in the sandbox of {name}: install it there", "no_git")
            if code:
                said = printed.read(TOLD).decode(errors="replace").strip() or f"exit code {code}"
                raise WorktreeError(f"git failed in the sandbox of {name}: {said}", "git_failed")
            yield printed


def _environment(author: tuple[str, str]) -> dict[str, str]:
    found = {
        "GIT_DIR": ".git",
        "GIT_WORK_TREE": ".",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "LC_ALL": "C",
        "GIT_CONFIG_COUNT": str(len(OFF)),
    }
    for number, (key, value) in enumerate(OFF.items()):
        found[f"GIT_CONFIG_KEY_{number}"] = key
        found[f"GIT_CONFIG_VALUE_{number}"] = value
    for role in ("AUTHOR", "COMMITTER"):
        found[f"GIT_{role}_NAME"] = author[0] or "dragoman"
        found[f"GIT_{role}_EMAIL"] = author[1] or "dragoman@localhost"
    return found


def _id(text: bytes) -> str:
    found = text.decode()
    if not is_id(found):
        raise ValueError(found)
    return found
