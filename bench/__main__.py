"""Runs the benchmark: `python -m bench [--quick] [--rows NAME] [--json FILE] [--write-docs]`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from bench.contenders import Arena
from bench.documentation import write_documentation
from bench.row import Result, Row, run_row, title_of
from bench.rows import ROWS
from bench.table import as_json, format_number, notes, render_text

ROUNDS, SECONDS = 5, 0.8
QUICK_ROUNDS, QUICK_SECONDS = 2, 0.2


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--rows", nargs="+", metavar="NAME", choices=[row.name for row in ROWS], help="only these rows"
    )
    parser.add_argument("--quick", action="store_true", help="short floods, two rounds: to see that it runs")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all samples there")
    parser.add_argument(
        "--write-docs", action="store_true", help="put the table into docs/reference/benchmarks.md"
    )
    parser.add_argument("--list", action="store_true", help="name the rows and stop")
    return parser.parse_args(arguments)


def measure(rows: list[Row], arena: Arena) -> list[Result]:
    results = []
    for row in rows:
        started = time.perf_counter()
        result = run_row(row, arena)
        figures = ", ".join(f"{title_of(name)} {format_number(result.median(name))}" for name in row.probes)
        print(
            f"{row.name}: {figures} {row.unit} ({time.perf_counter() - started:.0f} s)",
            file=sys.stderr,
            flush=True,
        )
        results.append(result)
    return results


def main() -> int:
    options = parse()
    rows = [row for row in ROWS if not options.rows or row.name in options.rows]
    if options.list:
        print("\n".join(f"{row.name:16} {row.title}" for row in rows))
        return 0
    rounds, seconds = (QUICK_ROUNDS, QUICK_SECONDS) if options.quick else (ROUNDS, SECONDS)
    with Arena(seconds, rounds) as arena:
        results = measure(rows, arena)
    print(f"\nMedians of {rounds} interleaved rounds\n")
    print(render_text(results, colour=sys.stdout.isatty()))
    for note in notes(results, arena):
        print(f"\n{note}")
    if options.json:
        options.json.write_text(json.dumps(as_json(results, arena), indent=2) + "\n")
    if options.write_docs:
        if options.quick or options.rows or any(result.noisy for result in results):
            print("\nNOT WRITTEN: the documentation takes only a whole run on a quiet machine")
            return 1
        write_documentation(results)
    return int(any(verdict.outcome == "FAIL" for result in results for verdict in result.verdicts()))


if __name__ == "__main__":
    sys.exit(main())
