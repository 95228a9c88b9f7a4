"""The web chat's figures: `make bench-web`, or `python -m support.web.bench [--seconds N] [--write-docs]`.

The exit code is 1 when one is beyond its limit. On a busy machine they say little, so they are written nowhere then.
What the machine did before is what counts: a browser's own processes cannot be told from others' while it runs.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence

from bench.documentation import machine, write_section
from bench.noise import NOISY
from playwright.async_api import async_playwright

from support.web import bench_page
from support.web.browser import FLAGS, chromium
from support.web.figures import Figure, measured

SECONDS = 60


async def measure(program: str, seconds: float) -> tuple[list[Figure], str]:
    """The figures, and the browser's version."""
    with bench_page.served(bench_page.build()) as site:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=program, args=FLAGS)
            figures = await measured(browser, site, seconds=seconds)
            version = browser.version
            await browser.close()
    return figures, version


def table(figures: Sequence[Figure]) -> str:
    lines = [f"| {each.name} | {each.value} | {each.limit} | {verdict(each)} |" for each in figures]
    return "\n".join(["| Figure | Measured | At most | |", "|---|---|---|---|", *lines])


def verdict(figure: Figure) -> str:
    return "" if not figure.limit else "ok" if figure.holds else "FAIL"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m support.web.bench", description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long to stream (%(default)s)")
    parser.add_argument(
        "--write-docs", action="store_true", help="put the table into docs/reference/benchmarks.md"
    )
    options = parser.parse_args()
    program = chromium()
    if program is None:
        print("NO CHROMIUM: nothing was measured (apt-get install chromium)")
        return 2
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    figures, version = asyncio.run(measure(program, options.seconds))
    report = f"Measured in Chromium {version}, {machine()}.\n\n{table(figures)}"
    print(report)
    if load > NOISY:
        print(
            f"\nNOISY: the machine's load was {load:.0%} of its cores before this began; repeat it when it is quiet"
        )
    if options.write_docs and (load > NOISY or options.seconds < SECONDS):
        print("\nNOT WRITTEN: the documentation takes only a whole run on a quiet machine")
        return 1
    if options.write_docs:
        write_section("bench-web", report)
    return int(any(not figure.holds for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
