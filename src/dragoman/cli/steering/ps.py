"""`dragoman ps`: the sessions that are live or need a person, those that wait first."""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.commands import AS_JSON, SETTINGS, Reporting
from dragoman.cli.settings import load_settings

if TYPE_CHECKING:
    from dragoman.cli.sessions.state import View
    from dragoman.config.paths import Paths
    from dragoman.store import FileStore

ORDER = (
    "waiting_for_permission",
    "agent_dead",
    "not answering",
    "interrupted",
    "context_lost",
    "silent",
    "working",
    "idle",
)
"""States by how much they need a person; others come last."""
TROUBLE = frozenset({"interrupted", "agent_dead", "context_lost"})
RECENT = timedelta(days=1)
"""How long a session that ended badly is shown though no process has it open."""
MOST = 500
"""Sessions that are looked at, the latest first."""
INTERVAL = 1.0
UP, DOWN, ENTER, QUIT = ("\x1b[A", "k"), ("\x1b[B", "j"), ("\r", "\n"), ("q", "\x03", "\x04")


@click.command(cls=Reporting, context_settings=SETTINGS)
@click.option("-w", "--watch", is_flag=True, help="Show it again every second; Enter attaches, q leaves.")
@click.option("--all", "everything", is_flag=True, help="Also sessions that are only stored.")
@AS_JSON
def ps(watch: bool, everything: bool, as_json: bool) -> None:
    """Show live sessions of all processes, those that wait for a person first.

    A session that ended badly in the last day is shown too. With --json and --watch each change is one line.
    """
    paths, _ = load_settings(quiet=True)
    if watch and not as_json and sys.stdin.isatty() and sys.stdout.isatty():
        _watch(paths, everything)
        return
    before: list[dict[str, Any]] | None = None
    while True:
        rows = collect(paths, everything)
        if as_json and rows != before:
            click.echo(json.dumps(rows, indent=None if watch else 2, ensure_ascii=False))
        elif not as_json:
            click.echo("\n".join(_lines(rows)) if rows else "No session is live.")
        if not watch:
            return
        before = rows
        time.sleep(INTERVAL)


def collect(paths: Paths, everything: bool) -> list[dict[str, Any]]:
    """What is shown of each session, in order."""
    from dragoman.cli.sessions.find import every, with_store
    from dragoman.cli.sessions.state import look
    from dragoman.gateway.ports.usage import Wanted

    async def read(store: FileStore) -> list[dict[str, Any]]:
        records = []
        async for record in every(store):
            records.append(record)
            if len(records) == MOST:
                break
        views = [view for view in await look(store, records) if everything or _is_shown(view)]
        spent = await store.usage.report(Wanted(by="session"))
        costs = {group.key: group.costs for group in spent.groups}
        turns = {group.key: group.turns for group in spent.groups}
        views.sort(key=lambda view: ORDER.index(view.state) if view.state in ORDER else len(ORDER))
        return [
            {
                **view.as_json(),
                "turns": turns.get(view.record.id, 0),
                "costs": [
                    {"currency": cost.currency, "amount": cost.amount, "estimated": cost.estimated}
                    for cost in costs.get(view.record.id, [])
                ],
            }
            for view in views
        ]

    return with_store(paths, read) if paths.database.exists() else []


def _is_shown(view: View) -> bool:
    if view.live:
        return True
    try:
        updated = datetime.fromisoformat(view.record.updated_at)
    except ValueError:
        return False
    return view.state in TROUBLE and datetime.now(UTC) - updated < RECENT


def _lines(rows: list[dict[str, Any]], chosen: int | None = None) -> list[str]:
    """The table, in lines no longer than the terminal; `chosen` is marked."""
    import shutil

    from dragoman.cli.sessions.command import COLOURS
    from dragoman.cli.sessions.state import ago, short_ids
    from dragoman.cli.terminal.screen import one_line
    from dragoman.cli.usage.show import money
    from dragoman.gateway.ports.usage import Cost
    from dragoman.terminal import clean, style

    short = short_ids([row["id"] for row in rows])
    cells = [["ID", "STATE", "SINCE", "AGENT", "COST", "TITLE"]]
    for row in rows:
        cost = " ".join(money(Cost(**cost)) for cost in row["costs"])
        state = row["state"].replace("_", " ")
        title = one_line(clean(row["title"] or row["cwd"]), 200)
        cells.append(
            [short[row["id"]], state, ago(row["updatedAt"]).removesuffix(" ago"), row["agent"], cost, title]
        )
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]) - 1)]
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000
    lines = []
    for number, line in enumerate(cells):
        front = "" if chosen is None else "> " if number == chosen + 1 else "  "
        padded = [cell.ljust(width) for cell, width in zip(line, widths, strict=False)]
        text = "  ".join([*padded, ""])
        rest = line[-1][: max(0, room - len(front) - len(text))]
        padded[1] = style(padded[1], fg=COLOURS.get(line[1], "reset")) if number else padded[1]
        whole = (front + "  ".join([*padded, rest])).rstrip()
        lines.append(whole if number else style(whole, fg="bright_black"))
    return lines


def _watch(paths: Paths, everything: bool) -> None:
    """Redraw the table in place until a session is chosen or the user leaves."""
    from dragoman.cli.commands import dispatch
    from dragoman.cli.steering.keys import Keys
    from dragoman.terminal import cleared

    chosen, drawn = 0, 0
    with Keys() as keys:
        while True:
            rows = collect(paths, everything)
            while True:
                chosen = max(0, min(chosen, len(rows) - 1))
                lines = _lines(rows, chosen) if rows else ["No session is live."]
                lines.append("Enter attaches, arrows choose, q leaves" if rows else "q leaves")
                click.echo(cleared(drawn) + "\n".join(lines))
                drawn = len(lines)
                key = keys.read(INTERVAL)
                if key is None:
                    break
                if key in QUIT:
                    return
                if key in ENTER and rows:
                    break
                chosen += (key in DOWN) - (key in UP)
            if key is not None:
                break
    dispatch(["sessions", "attach", rows[chosen]["id"]])
