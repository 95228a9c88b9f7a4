"""Writes the measured table into the documentation, between two markers."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from bench.installs import NODE_PACKAGES, PYTHON_SDK, ROOT
from bench.row import Result
from bench.table import render_markdown

PAGE = ROOT / "docs" / "reference" / "benchmarks.md"


def write_documentation(results: Sequence[Result], page: Path = PAGE) -> None:
    write_section("bench", measured(results), page)


def write_section(name: str, section: str, page: Path = PAGE) -> None:
    """Replace what stands between the markers of this name; everything else on the page is written by hand."""
    first, last = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    before, begin, rest = page.read_text(encoding="utf-8").partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise ValueError(f"{page} has no {first} … {last}")
    page.write_text(f"{before}{first}\n{section}\n{last}{after}", encoding="utf-8")


def machine() -> str:
    return f"Python {platform.python_version()}, {platform.system()}, {os.cpu_count()} cores"


def revision() -> str:
    """The day and the revision that were measured."""
    words = ["git", "describe", "--always", "--abbrev=12", "--dirty", "--exclude=*"]
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    return f"Measured on {time.strftime('%Y-%m-%d')} at {said or 'an unknown revision'}"


def measured(results: Sequence[Result]) -> str:
    others = ", ".join([PYTHON_SDK.replace("==", " "), NODE_PACKAGES[0].replace("/sdk@", "/sdk ")])
    loads = [result.foreign_load for result in results if result.foreign_load is not None]
    others_used = f" Other programs used up to {max(loads):.0%} of the processors meanwhile." if loads else ""
    return f"{revision()}, with {machine()}, beside {others}.{others_used}\n\n{render_markdown(results)}"
