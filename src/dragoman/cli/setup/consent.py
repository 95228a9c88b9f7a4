"""Shows changes to files, asks, and makes them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from dragoman.edited_file import Change, EditError
from dragoman.masking import mask_text
from dragoman.terminal import style

NOT_DONE = 3
"""Exit code: nothing was changed, because nobody agreed."""
YES = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def show_diff(changes: Sequence[Change], *, err: bool = True) -> None:
    """Print the differences; values that look like secrets are masked."""
    for line in diff_of(changes).splitlines():
        colour = None if line.startswith(("+++", "---")) else _COLOURS.get(line[:1])
        click.echo(style(line, fg=colour) if colour else line, err=err)


def diff_of(changes: Sequence[Change]) -> str:
    return mask_text("".join(change.diff() for change in changes))


def agreed(question: str, yes: bool) -> bool:
    """Whether the change may be made; without a terminal only `--yes` says so."""
    if yes:
        return True
    if sys.stdin is None or not sys.stdin.isatty():
        click.echo("Nothing was changed: without a terminal there is no confirmation. Give --yes.", err=True)
        return False
    try:
        if click.confirm(question, err=True):
            return True
    except click.Abort:
        click.echo(err=True)
    click.echo("Nothing was changed.", err=True)
    return False


@contextmanager
def reported() -> Iterator[None]:
    """Report what cannot be changed as one sentence, with exit code 1."""
    from dragoman.cli.entry import complain

    try:
        yield
    except EditError as error:
        complain(str(error))
        raise SystemExit(1) from None


def make(changes: Sequence[Change]) -> list[Path]:
    """Make the changes that are needed; returns the back-ups."""
    made = [change.apply() for change in changes if change.is_needed]
    return [backup for backup in made if backup is not None]
