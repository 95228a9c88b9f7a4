"""Checks the configuration files: what is wrong, with file and line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from dragoman.cli.doctor.finding import Context, Finding
from dragoman.cli.settings import QUIET
from dragoman.config.load import DEFAULT

_KEY = re.compile(r'"((?:[^"\\]|\\.)*)"|\[(\d+)\]|([^.\[\]"]+)')
_HEADER = re.compile(r"^\s*(\[\[?)\s*([^\]]+?)\s*\]")


def check(context: Context) -> Iterator[Finding]:
    file = context.paths.config_file
    for line in (context.trouble or "").splitlines():
        yield _trouble(line, file)
    for warning in context.loaded.warnings:
        yield Finding(
            "warning",
            "workspace",
            warning,
            "if you trust this project: look at its file, then run `dragoman config trust` in it",
        )
    if context.trouble is None:
        yield _sound(context)


def _sound(context: Context) -> Finding:
    file = context.paths.config_file
    origins = context.loaded.origins
    own = (DEFAULT, "known agent", QUIET.origin, str(file))
    others = sorted({origin for origin in origins.values() if origin not in own})
    also = f"; also from {', '.join(others)}" if others else ""
    if not file.exists():
        return Finding(
            "ok", str(file), f"there is none, so the defaults hold (`dragoman config init` makes one){also}"
        )
    return Finding("ok", str(file), f"every key is known, and every value of the right type{also}")


def _trouble(line: str, config_file: Path) -> Finding:
    """A line of a `ConfigError`, which begins with `FILE:LINE: ` or `FILE: KEY: `."""
    place = re.match(r"(/.+?\.toml)(?::(\d+))?: ", line)
    if place is None:
        return Finding("error", "configuration", line, "change what this names")
    file, number, rest = Path(place[1]), place[2], line[place.end() :]
    if number is None:
        key = rest.partition(": ")[0]
        number = str(line_of(_text(file), key) or "") or None
    about = f"{file}:{number}" if number else str(file)
    where = f"line {number} of {file}" if number else str(file)
    if (meant := re.search(r'did you mean "([^"]+)"', rest)) is not None:
        return Finding("error", about, rest, f"write {meant[1]} in {where}")
    return Finding("error", about, rest, f"mend {where}, then run `dragoman doctor` again")


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def line_of(text: str, key: str) -> int | None:
    """The line that sets a key such as `agents.gemini.command` or `policy.rules[0].kind`; else that of its table."""
    wanted = tuple(quoted or index or bare for quoted, index, bare in _KEY.findall(key))
    table: tuple[str, ...] = ()
    seen: dict[tuple[str, ...], int] = {}
    best: tuple[int, int] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if (header := _HEADER.match(line)) is not None:
            table = _parts(header[2])
            if header[1] == "[[":
                seen[table] = seen.get(table, -1) + 1
                table = (*table, str(seen[table]))
            here = table
        elif "=" in line and not line.lstrip().startswith("#"):
            here = (*table, *_parts(line.partition("=")[0]))
        else:
            continue
        if here == wanted[: len(here)] and here and (best is None or len(here) > best[0]):
            best = len(here), number
    return best[1] if best is not None else None


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple((quoted or bare).strip(" '") for quoted, _, bare in _KEY.findall(dotted.strip()))
