"""The command `dragoman usage`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dragoman.cli.audit.times import Moment
from dragoman.cli.commands import AS_JSON, SETTINGS, Reporting
from dragoman.cli.settings import load_settings
from dragoman.gateway.ports.usage import BY, Group, Report, Tokens, Wanted

if TYPE_CHECKING:
    from dragoman.config.paths import Paths


@click.command(cls=Reporting, context_settings=SETTINGS)
@click.option(
    "--by", type=click.Choice(BY), default="agent", show_default=True, help="What each row is about."
)
@click.option("--since", type=Moment(), help="Only turns since: 30m, 2h, 7d, today, a date.")
@click.option("--until", type=Moment(), help="Only turns before this time.")
@click.option("-a", "--agent", help="Only this agent.")
@click.option("--model", help="Only this model.")
@click.option("--session", metavar="ID", help="Only this session, also if it was deleted: its whole id then.")
@click.option("--workspace", metavar="FOLDER", help="Only this workspace.")
@click.option("--identity", help="Only this token's name, or local.")
@AS_JSON
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, one line for each row and currency.")
def usage(as_json: bool, as_csv: bool, **filters: str | None) -> None:
    """Show the tokens and the cost of turns.

    Costs are what agents tell; ~ marks those that come from the prices in the configuration (usage.prices). Days are
    local ones. Amounts in different currencies are never added up.
    """
    from dragoman.cli.usage import show

    if as_json and as_csv:
        raise click.UsageError("choose one of --json and --csv")
    paths, _ = load_settings(quiet=True)
    report = _read(paths, filters)
    if as_json:
        show.print_json(report)
    elif as_csv:
        show.print_csv(report)
    else:
        show.print_report(report)


def _read(paths: Paths, filters: dict[str, str | None]) -> Report:
    from dragoman.cli.sessions.find import find, with_store
    from dragoman.config.errors import ConfigError
    from dragoman.store import FileStore

    wanted = {name: value for name, value in filters.items() if value is not None}
    if not paths.database.exists():
        return Report(filters["by"], [], Group("total", 0, Tokens(), 0, []))  # type: ignore[arg-type]

    async def read(store: FileStore) -> Report:
        if "session" in wanted:
            try:
                wanted["session"] = (await find(store, wanted["session"])).id
            except ConfigError:  # a deleted session is still in the ledger
                known = await store.usage.report(Wanted(session=wanted["session"]))
                if not known.total.turns:
                    raise
        return await store.usage.report(Wanted(**wanted))  # type: ignore[arg-type]

    return with_store(paths, read)
