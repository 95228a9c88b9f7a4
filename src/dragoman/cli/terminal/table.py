"""Prints a table: aligned, and on a terminal coloured and fitted to its width."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence

import click

from dragoman.terminal import clean, style

NARROWEST = 30
"""The least width of the last cell beside the others; with less room it is written below them."""
OWN_LINE = "    "


def print_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], colours: Mapping[str, str] | None = None
) -> None:
    """Print rows, aligned, coloured and cut to the width on a terminal; plain and whole elsewhere."""
    if sys.stdout.isatty():  # before it is measured
        rows = [[clean(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    if not sys.stdout.isatty():
        for row in [header, *rows]:
            click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return
    room = shutil.get_terminal_size().columns
    click.echo(_line(header, widths, room, dict.fromkeys(header, "bright_black")))
    for row in rows:
        for line in _wrapped(row, widths, room, colours or {}):
            click.echo(line)


def _wrapped(
    row: Sequence[str], widths: Sequence[int], room: int, colours: Mapping[str, str]
) -> Iterator[str]:
    """The lines of one row; the last column holds an explanation, which wraps to further lines."""
    indent = sum(widths[:-1]) + 2 * (len(widths) - 1)
    beside = room - indent
    longest = max(map(len, row[-1].split()), default=0)
    if beside >= NARROWEST and beside >= longest:
        first, *rest = textwrap.wrap(row[-1], beside, break_on_hyphens=False) or [""]
        yield _line([*row[:-1], first], widths, room, colours)
        yield from (" " * indent + line for line in rest)
        return
    yield _line([*row[:-1], ""], widths, room, colours)
    yield from textwrap.wrap(
        row[-1], room, initial_indent=OWN_LINE, subsequent_indent=OWN_LINE, break_on_hyphens=False
    )


def _line(row: Sequence[str], widths: Sequence[int], room: int, colours: Mapping[str, str]) -> str:
    text = ""
    used = 0
    for cell, width in zip(row, widths, strict=True):
        shown = cell.ljust(width)[: max(0, room - used)]
        used += len(shown) + 2
        text += (style(shown, fg=colours[cell]) if cell in colours else shown) + "  "
    return text.rstrip()
