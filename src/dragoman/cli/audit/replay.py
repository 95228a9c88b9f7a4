"""`dragoman policy replay`: rules over the acts of the past."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from dragoman.cli.audit.times import Moment
from dragoman.cli.commands import AS_JSON
from dragoman.cli.entry import complain
from dragoman.cli.settings import load_settings
from dragoman.cli.terminal.progress import waiting
from dragoman.cli.terminal.table import print_table


@click.command()
@click.option(
    "--since", type=Moment(), default="30d", show_default=True, help="Only acts since: 2h, 7d, a date."
)
@click.option(
    "--rules",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file with [[policy.rules]] to try [default: the rules in force].",
)
@AS_JSON
def replay(since: str, rules: Path | None, as_json: bool) -> None:
    """Try rules on every act of the past and show what would have been decided otherwise; nothing is run."""
    from dragoman.audit.read import Query, query
    from dragoman.policy.decide import Policy
    from dragoman.policy.load import load_policy, rules_to_try
    from dragoman.policy.replay import replay as run

    paths, loaded = load_settings(quiet=True)
    policy, warnings = load_policy(loaded, paths)
    for warning in warnings:
        complain(warning)
    if rules is not None:
        policy = Policy(rules_to_try(rules), policy.narrow, policy.administrator, policy.protected)
    with waiting("trying the rules"):
        found = run(policy, query(paths.state_dir / "audit", Query(kind="decision", since=since))).facts()
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    rows = [
        [change["was"], change["now"], str(change["count"]), change["rule"], _examples(change)]
        for change in found["changes"]
    ]
    if rows:
        print_table(["WAS", "NOW", "ACTS", "RULE", "FOR EXAMPLE"], rows, {"deny": "red", "allow": "green"})
    click.echo(f"{found['acts']} acts since {since}: {found['changed']} would be decided otherwise.")
    if found["unreadable"]:
        complain(f"{found['unreadable']} records could not be read as acts")


def _examples(change: dict[str, Any]) -> str:
    return "; ".join(dict.fromkeys(str(each["about"]) for each in change["examples"]))
