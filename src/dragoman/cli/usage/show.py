"""Prints a report on usage: as a table, with bars on a terminal, as JSON or as CSV."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable

import click
import msgspec

from dragoman.cli.entry import complain
from dragoman.cli.terminal.screen import one_line
from dragoman.cli.terminal.table import print_table
from dragoman.gateway.ports.usage import MOST_GROUPS, Cost, Group, Report, Tokens

BAR = 20
"""Columns of the longest bar."""
_EIGHTHS = " ▏▎▍▌▋▊▉"
_FACTS = ("session", "agent", "model", "workspace", "identity", "at", "outcome", "seconds")
_TOKENS = Tokens.__struct_fields__


def print_json(report: Report) -> None:
    click.echo(json.dumps(msgspec.to_builtins(report), indent=2, ensure_ascii=False))


def print_csv(report: Report) -> None:
    """Tokens and turns only in the first line of a row with several currencies, so that columns can be added up."""
    facts = _FACTS if report.by == "turn" else ()
    writer = csv.writer(sys.stdout, lineterminator="\n")
    counts = ("turns", "unknown", "unpriced", *_TOKENS, "total")
    writer.writerow([report.by, *facts, *counts, "currency", "amount", "estimated"])
    for group in report.groups:
        known = [_cell(getattr(group.turn, name, "")) for name in facts]
        numbers: list[object] = [group.turns, group.unknown, group.unpriced]
        numbers += [*(getattr(group.tokens, name) for name in _TOKENS), group.total_tokens]
        for cost in (*group.costs,) or (None,):
            money = (
                [cost.currency, _plain(cost.amount), _plain(cost.estimated)] if cost is not None else [""] * 3
            )
            writer.writerow([_cell(group.key), *known, *numbers, *money])
            numbers = [""] * len(counts)


def _cell(value: object) -> object:
    """Text that a spreadsheet does not take for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t") else value


def print_report(report: Report) -> None:
    if not report.total.turns:
        click.echo("No turn is in the ledger for this.", err=True)
        return
    bars = sys.stdout.isatty()
    header = [report.by.upper(), "TURNS", "INPUT", "OUTPUT", "CACHED", "TOTAL", "COST"]
    weigh = _weight(report)
    most = max((weigh(group) for group in report.groups), default=0.0)
    rows = [
        [*_row(report.by, group), *([bar(weigh(group), most)] if bars else [])] for group in report.groups
    ]
    total = _numbers(report.total)
    rows.append(["total", *total, *([""] if bars else [])])
    print_table([*header, *([""] if bars else [])], _aligned(header, rows), {"total": "bright_black"})
    _explain(report)


def _weight(report: Report) -> Callable[[Group], float]:
    """What bars show: cost in the currency with the most, or tokens if no cost is known."""
    if not any(cost.amount for cost in report.total.costs):
        return lambda group: float(group.total_tokens)
    currency = max(report.total.costs, key=lambda cost: cost.amount).currency
    return lambda group: sum(cost.amount for cost in group.costs if cost.currency == currency)


def bar(value: float, most: float) -> str:
    """`value` as a bar, where `most` is as long as a bar gets."""
    if most <= 0 or value <= 0:
        return ""
    eighths = max(1, round(value / most * BAR * 8))
    if not (sys.stdout.encoding or "").lower().startswith("utf"):
        return "#" * max(1, eighths // 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _row(by: str, group: Group) -> list[str]:
    return [_name(by, group), *_numbers(group)]


def _name(by: str, group: Group) -> str:
    if by == "turn" and group.turn is not None:
        turn = group.turn
        return one_line(f"{turn.at[:19]}Z {turn.session[:12]} {turn.agent} {turn.outcome}", 70)
    named = one_line(group.key, 60) or "(unknown)"
    return f"{named} {one_line(group.title, 30)}" if group.title else named


def _numbers(group: Group) -> list[str]:
    tokens, known = group.tokens, group.turns > group.unknown
    counts = [tokens.input, tokens.output, tokens.cache_read + tokens.cache_write, group.total_tokens]
    shown = [f"{count:,}" if known else "?" for count in counts]
    return [f"{group.turns:,}", *shown, " + ".join(map(money, group.costs)) or "?"]


def money(cost: Cost) -> str:
    digits = 2 if cost.amount >= 100 else 4
    return f"{'~' if cost.estimated else ''}{cost.amount:,.{digits}f} {cost.currency}"


def _plain(amount: float) -> str:
    return f"{amount:.9f}".rstrip("0").rstrip(".")


def _aligned(header: list[str], rows: list[list[str]]) -> list[list[str]]:
    """Numbers end below each other."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    numbers = range(1, len(header) - 1)
    return [
        [cell.rjust(widths[at]) if at in numbers else cell for at, cell in enumerate(row)] for row in rows
    ]


def _explain(report: Report) -> None:
    total = report.total
    if total.unknown:
        complain(
            f"{_turns(total.unknown)} without any figures: the agent told none, so they are not in the sums"
        )
    if total.unpriced:
        complain(f"{_turns(total.unpriced)} with tokens but without a cost: [usage.prices] sets prices")
    if report.more:
        complain(f"there are more than {MOST_GROUPS} rows: the total has all, --since shows fewer")


def _turns(count: int) -> str:
    return "1 turn is" if count == 1 else f"{count:,} turns are"
