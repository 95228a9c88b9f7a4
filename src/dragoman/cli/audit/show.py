"""Records for people: one line each, or one in full."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import click

from dragoman.audit.browse.table import about
from dragoman.cli.terminal.table import print_table
from dragoman.terminal import clean

COLOURS = {"deny": "red", "allow": "green", "ask": "yellow", "unmediated": "magenta"}
HEADER = ["TIME", "WHAT", "AGENT", "SESSION", "BY", "ABOUT"]


def print_records(found: list[dict[str, Any]], *, header: bool = True) -> None:
    rows = [_row(each) for each in found]
    if header:
        print_table(HEADER, rows, COLOURS)
    else:
        for row in rows:
            click.echo("  ".join(clean(cell) for cell in row if cell))


def print_record(found: dict[str, Any]) -> None:
    """Every member on lines of its own."""
    for name, value in found.items():
        if isinstance(value, dict | list):
            click.echo(f"{name}:")
            for line in json.dumps(value, indent=2, ensure_ascii=False).splitlines():
                click.echo(f"  {clean(line)}")
        else:
            click.echo(f"{name}: {clean(str(value))}")


def _row(found: dict[str, Any]) -> list[str]:
    when = datetime.fromisoformat(found["at"]).astimezone()
    what = str(found.get("decision") or found["kind"])
    if found.get("unmediated") is True:
        what = "unmediated"
    session = str(found.get("session") or "")
    by = str(found.get("by") or "")
    if by in ("", "user"):  # else a rule answered, such as that of `exec --approve none`
        by = str(found.get("identity") or by)
    return [
        when.strftime("%m-%d %H:%M:%S"),
        what,
        str(found.get("agent") or ""),
        session.removeprefix("dgm_")[:8],
        by[:30],
        about(found),
    ]
