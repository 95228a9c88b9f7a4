"""Writes the measured table into the documentation, between two markers."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path

from bench.installs import NODE_PACKAGES, PYTHON_SDK, ROOT
from bench.row import Result
from bench.table import render_markdown

PAGE = ROOT / "docs" / "reference" / "benchmarks.md"
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"


def write_documentation(results: Sequence[Result], page: Path = PAGE) -> None:
    """Replace what stands between the markers; everything else on the page is written by hand."""
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} has no {BEGIN} … {END}")
    page.write_text(f"{before}{BEGIN}\n{measured(results)}\n{END}{after}", encoding="utf-8")


def measured(results: Sequence[Result]) -> str:
    where = f"Python {platform.python_version()}, {platform.system()}, {os.cpu_count()} cores"
    others = ", ".join([PYTHON_SDK.replace("==", " "), NODE_PACKAGES[0].replace("/sdk@", "/sdk ")])
    loads = [result.foreign_load for result in results if result.foreign_load is not None]
    others_used = f" Other programs used up to {max(loads):.0%} of the processors meanwhile." if loads else ""
    return f"Measured with {where}, beside {others}.{others_used}\n\n{render_markdown(results)}"
