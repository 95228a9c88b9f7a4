"""Records as rows of a table: what each is about in one line, and cells for a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from dragoman.wire.json_types import objects

CSV = ["id", "at", "kind", "session", "agent", "tool", "decision", "by", "rule", "about"]


def about(found: dict[str, Any]) -> str:
    """What an act is about, in one line: its commands, else its paths, hosts or tool."""
    act = found.get("act")
    if isinstance(act, dict):
        commands = [" ".join(map(str, each.get("words", []))) for each in objects(act.get("commands"))]
        paths = [f"{each.get('access')} {each.get('path')}" for each in objects(act.get("paths"))]
        told = commands or paths or [str(each) for each in act.get("hosts") or []]
        if told:
            return "; ".join(told)
    for name in ("title", "text", "name", "address", "mode", "path", "workspace", "version", "status"):
        if isinstance(found.get(name), str):
            return str(found[name])
    return ""


def as_csv(records: Iterable[dict[str, Any]]) -> Iterator[str]:
    """A table with a header, line by line."""
    yield _line(CSV)
    for found in records:
        values = {**found, "about": about(found)}
        cells = (values.get(name) for name in CSV)
        yield _line([harmless(_text(cell)) for cell in cells])


def as_ndjson(records: Iterable[dict[str, Any]]) -> Iterator[str]:
    for found in records:
        yield msgspec.json.encode(found).decode() + "\n"


def harmless(cell: str) -> str:
    """A cell that a spreadsheet does not take for a formula."""
    return f"'{cell}" if cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell


def _text(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return msgspec.json.encode(value).decode()  # a rule


def _line(cells: list[str]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue()
