"""Writes the table of checks into docs/how-to/doctor.md: `python -m dragoman.cli.doctor docs/how-to/doctor.md`."""

from __future__ import annotations

import sys
from pathlib import Path

from dragoman.cli.doctor.checks import CHECKS

BEGIN, END = "<!-- checks -->\n", "<!-- end of checks -->"


def table() -> str:
    """The checks as a table for the documentation."""
    rows = [f"| `{check.name}` | {check.looks_at} | {check.seconds:g} s |" for check in CHECKS]
    return "\n".join(["| Check | Looks at | At most |", "|---|---|---|", *rows]) + "\n"


def write_table(page: Path) -> None:
    """Replace the table in a page, between its two marks."""
    before, _, rest = page.read_text().partition(BEGIN)
    page.write_text(f"{before}{BEGIN}{table()}{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    write_table(Path(sys.argv[1]))
