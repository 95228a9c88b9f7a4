"""Checks the terminal that this command runs in."""

from __future__ import annotations

import codecs
import locale
import os
import sys
from collections.abc import Iterator

from dragoman.cli.doctor.finding import Context, Finding

NARROWEST = (60, 15)
"""Columns and lines that `dragoman chat` needs."""


def check(context: Context) -> Iterator[Finding]:
    encoding = _encoding()
    if encoding != "utf-8":
        yield Finding(
            "warning", "characters", f"texts are written as {encoding}, which lacks most characters",
            "set a UTF-8 locale, such as `export LC_ALL=C.UTF-8`",
        )  # fmt: skip
    if not any(stream is not None and stream.isatty() for stream in (sys.stdout, sys.stderr)):
        yield Finding("ok", "terminal", "none: the output goes to a file or a program")
        return
    term = context.environ.get("TERM", "")
    if not term or term in ("dumb", "unknown"):
        yield Finding(
            "warning", "TERM", f"it is {term or 'not set'}, so there are no colours, and `dragoman chat` cannot draw",
            "use a terminal that sets TERM, or `export TERM=xterm-256color`",
        )  # fmt: skip
        return
    columns, lines = _size()
    if columns < NARROWEST[0] or lines < NARROWEST[1]:
        yield Finding(
            "warning", "size", f"the terminal has {columns} columns and {lines} lines",
            f"make it at least {NARROWEST[0]} by {NARROWEST[1]}: tables and `dragoman chat` are cut off",
        )  # fmt: skip
    colours = "off by NO_COLOR" if context.environ.get("NO_COLOR") else "on"
    yield Finding("ok", "terminal", f"{term}, colours {colours}, {encoding}, {columns} by {lines}")


def _encoding() -> str:
    name = (getattr(sys.stdout, "encoding", None) if sys.stdout is not None else None) or locale.getencoding()
    try:
        return codecs.lookup(name).name
    except LookupError:
        return str(name)


def _size() -> tuple[int, int]:
    for descriptor in (1, 2):
        try:
            size = os.get_terminal_size(descriptor)
        except (OSError, ValueError):
            continue
        return size.columns, size.lines
    return 80, 24
