"""Rows of text, aligned; coloured and cut to the width on a terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence

import click


def print_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], colours: Mapping[str, str] | None = None
) -> None:
    """Aligned, coloured and cut to the width on a terminal; plain and whole elsewhere."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    if not sys.stdout.isatty():
        for row in [header, *rows]:
            click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return
    room = shutil.get_terminal_size().columns
    click.echo(_line(header, widths, room, dict.fromkeys(header, "bright_black")))
    for row in rows:
        click.echo(_line(row, widths, room, colours or {}))


def _line(row: Sequence[str], widths: Sequence[int], room: int, colours: Mapping[str, str]) -> str:
    text = ""
    used = 0
    for cell, width in zip(row, widths, strict=True):
        shown = cell.ljust(width)[: max(0, room - used)]
        used += len(shown) + 2
        text += (click.style(shown, fg=colours[cell]) if cell in colours else shown) + "  "
    return text.rstrip()
