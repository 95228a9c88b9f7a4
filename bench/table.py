"""The results as text for a terminal, as Markdown for the documentation and as JSON for programs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from bench.contenders import CONTENDERS, DIRECT, DRAGOMAN, PLAIN, PYTHON_SDK, TYPESCRIPT_SDK, Arena
from bench.row import Must, Result, Verdict, title_of

COLUMNS = (DIRECT, DRAGOMAN, PLAIN, PYTHON_SDK, TYPESCRIPT_SDK)
HEADER = ("", "unit", *(CONTENDERS[name].title for name in COLUMNS), "figure", "must", "target", "")
SIGNS = {">=": "≥", "<=": "≤"}
COLOURS = {"ok": "32", "FAIL": "31;1", "NOT MEASURED": "33;1"}


def format_number(value: float | None) -> str:
    """Three significant digits, which is more than a noisy machine repeats."""
    if value is None:
        return "-"
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.01 else f"{value:.4f}"


def figure_text(verdict: Verdict, unit: str) -> str:
    if verdict.figure is None:
        return "-"
    subject = "" if verdict.must.subject == DRAGOMAN else f"{title_of(verdict.must.subject)}: "
    if verdict.must.reference is None:
        return f"{subject}{format_number(verdict.figure)} {unit}"
    return f"{subject}{format_number(verdict.figure)} × {title_of(verdict.must.reference)}"


def must_text(must: Must, limit: float | None, unit: str) -> str:
    if limit is None:
        return ""
    return f"{SIGNS[must.comparison]} {limit:g} {unit if must.reference is None else '×'}"


def table_lines(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """One line per must; the measured medians stand on a row's first line."""
    lines = []
    for result in results:
        unit = result.row.unit
        measured = [result.row.title, unit, *(format_number(result.median(name)) for name in COLUMNS)]
        for verdict in result.verdicts():
            must = verdict.must
            limits = (must_text(must, must.limit, unit), must_text(must, must.target, unit))
            lines.append((*measured, figure_text(verdict, unit), *limits, verdict.outcome))
            measured = [""] * len(measured)
    return lines


def render_text(results: Sequence[Result], colour: bool) -> str:
    lines = [HEADER, *table_lines(results)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADER))]
    right = range(2, 2 + len(COLUMNS))
    text = []
    for line in lines:
        cells = [
            c.rjust(w) if i in right else c.ljust(w)
            for i, (c, w) in enumerate(zip(line, widths, strict=True))
        ]
        if colour and line[-1] in COLOURS:
            cells[-1] = f"\x1b[{COLOURS[line[-1]]}m{line[-1]}\x1b[0m"
        text.append("  ".join(cells).rstrip())
    return "\n".join(text)


def render_markdown(results: Sequence[Result]) -> str:
    lines = [
        HEADER,
        ("---", "---", *("---:" for _ in COLUMNS), "---", "---", "---", "---"),
        *table_lines(results),
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def notes(results: Sequence[Result], arena: Arena) -> list[str]:
    """Say, loudly, what was not measured or broke, and whose updates went astray."""
    rows_of: dict[tuple[str, str, str], list[str]] = {}
    for result in results:
        for label, reasons in (("NOT MEASURED", result.absent), ("FAILED", result.errors)):
            for name, reason in reasons.items():
                rows_of.setdefault((label, title_of(name), reason), []).append(result.row.name)
    found = [f"{label}: {who} ({', '.join(rows)}): {why}" for (label, who, why), rows in rows_of.items()]
    noisy = [f"{result.row.name} {result.foreign_load:.0%}" for result in results if result.noisy]
    if noisy:
        found.append(
            f"NOISY: other programs used the processors, repeat when it is quiet: {', '.join(noisy)}"
        )
    for name, faults in arena.faults.items():
        if faults.total:
            found.append(f"FAULTS: {title_of(name)}: {faults}")
    return found


def as_json(results: Sequence[Result], arena: Arena) -> dict[str, Any]:
    return {
        "rows": [
            {
                "name": result.row.name,
                "title": result.row.title,
                "unit": result.row.unit,
                "foreign_load": result.foreign_load,
                "samples": result.samples,
                "absent": result.absent,
                "errors": result.errors,
                "musts": [dataclasses.asdict(verdict) for verdict in result.verdicts()],
            }
            for result in results
        ],
        "faults": {name: dataclasses.asdict(faults) for name, faults in arena.faults.items()},
    }
