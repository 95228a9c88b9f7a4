"""Prints changes: as a patch, as a list of files, as JSON."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click
import msgspec

from dragoman.cli.entry import complain
from dragoman.cli.terminal.screen import one_line
from dragoman.cli.terminal.table import print_table
from dragoman.gateway.ports.checkpoints import Change, Changes, Checkpoint, LeftOut
from dragoman.gateway.ports.commits import Uncommitted
from dragoman.terminal import escape, escape_json, style

LETTERS = {"added": "A", "deleted": "D", "modified": "M", "renamed": "R", "type_changed": "T"}
COLOURS = {"+": "green", "-": "red", "@": "cyan", "d": "bold"}
REASONS = {
    "too_large": "too large (checkpoints.max_file_bytes)",
    "unreadable": "could not be read",
    "repository": "a repository of its own",
    "filter": "a git filter would have to run (such as Git LFS)",
}


def print_json(changes: Changes | Uncommitted) -> None:
    click.echo(escape_json(msgspec.json.format(msgspec.json.encode(changes).decode(), indent=2)))


def print_stat(changes: Changes | Uncommitted) -> None:
    if not changes.files:
        click.echo("No changes.", err=True)
    rows = [[LETTERS[each.status], _name(each), _lines(each), _marks(each)] for each in changes.files]
    if rows:
        print_table(["", "FILE", "LINES", ""], rows, {"A": "green", "D": "red"})
    _complain(changes)


def print_patch(patch: bytes, changes: Changes | Uncommitted) -> None:
    """Print the patch: the very bytes into a pipe or file, with colours and without control characters on a terminal."""
    if not sys.stdout.isatty():
        sys.stdout.flush()
        sys.stdout.buffer.write(patch)
        sys.stdout.buffer.flush()
    else:
        for line in patch.decode(errors="replace").splitlines():
            colour = COLOURS.get(line[:1])
            how = {"bold": True} if colour == "bold" else {"fg": colour} if colour else {}
            click.echo(style(line, **how) if how else line)
    for change in changes.files:
        if change.shared:
            complain(f"{escape(change.path)} is shared: not only this session changed it")
    _complain(changes)


def print_turns(checkpoints: Sequence[Checkpoint]) -> None:
    ends = {point.turn: point for point in checkpoints if point.kind == "end"}
    rows = []
    for begin in (point for point in checkpoints if point.kind == "begin"):
        end = ends.get(begin.turn)
        changed = "no end" if end is None else "unchanged" if end.tree == begin.tree else "changed"
        late = "late" if begin.late else ""
        rows.append(
            [str(begin.turn), begin.time[:19].replace("T", " "), changed, late, one_line(begin.title, 60)]
        )
    print_table(["TURN", "BEGAN (UTC)", "FILES", "", "MESSAGE"], rows, {})


def _name(change: Change) -> str:
    path = escape(change.path)
    return f"{escape(change.old_path)} → {path}" if change.old_path is not None else path


def _lines(change: Change) -> str:
    return "binary" if change.binary else f"+{change.added} -{change.removed}"


def _marks(change: Change) -> str:
    mode = f"mode {change.old_mode} → {change.new_mode}" if change.old_mode and change.new_mode else ""
    marks = ("shared" if change.shared else "", "submodule" if change.submodule else "", mode)
    return ", ".join(filter(None, marks))


def _complain(changes: Changes | Uncommitted) -> None:
    """Say what the changes do not cover."""
    for entry in changes.left_out[:20]:
        complain(f"not recorded: {escape(entry.path)}: {_why(entry)}")
    more = len(changes.left_out[20:]) + changes.more_left_out
    if more:
        complain(f"not recorded: {more} more")
    if isinstance(changes, Uncommitted):
        if not changes.branch:
            complain("no branch is checked out (the head is detached)")
        if not changes.head:
            complain("there is no commit yet: every file is new")
        return
    if changes.since.late:
        complain(
            "the checkpoint of this turn's beginning was late: a change in its first moments may be missing"
        )
    if changes.running:
        complain("this is the state of now: the last turn runs, or its end was not recorded")


def _why(entry: LeftOut) -> str:
    size = f", {entry.size} bytes" if entry.size else ""
    return REASONS[entry.reason] + size
