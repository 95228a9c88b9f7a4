"""Records for people: one line each, or one in full."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import click

from dragoman.cli.terminal.table import print_table
from dragoman.terminal import clean

COLOURS = {"deny": "red", "allow": "green", "ask": "yellow", "unmediated": "magenta"}
HEADER = ["TIME", "WHAT", "AGENT", "SESSION", "BY", "ABOUT"]
CSV = ["id", "at", "kind", "session", "agent", "tool", "decision", "by", "rule", "about"]


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


def cells(found: dict[str, Any]) -> list[str]:
    """The record as a row of a CSV file."""
    values = {**found, "about": about(found)}
    return [str(values.get(name) if values.get(name) is not None else "") for name in CSV]


def about(found: dict[str, Any]) -> str:
    """What an act is about, in one line: its commands, else its paths, hosts or tool."""
    act = found.get("act")
    if isinstance(act, dict):
        commands = [" ".join(map(str, each.get("words", []))) for each in _objects(act.get("commands"))]
        paths = [f"{each.get('access')} {each.get('path')}" for each in _objects(act.get("paths"))]
        told = commands or paths or [str(each) for each in act.get("hosts") or []]
        if told:
            return "; ".join(told)
    for name in ("title", "text", "name", "address", "mode"):
        if isinstance(found.get(name), str):
            return str(found[name])
    return ""


def _objects(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _row(found: dict[str, Any]) -> list[str]:
    when = datetime.fromisoformat(found["at"]).astimezone()
    what = str(found.get("decision") or found["kind"])
    session = str(found.get("session") or "")
    by = str(found.get("rule") or found.get("by") or "")
    return [
        when.strftime("%m-%d %H:%M:%S"),
        what,
        str(found.get("agent") or ""),
        session.removeprefix("dgm_")[:8],
        by[:30],
        about(found),
    ]
