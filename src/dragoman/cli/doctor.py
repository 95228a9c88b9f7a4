"""`dragoman doctor`: which kinds of sandbox work on this machine, and why the rest does not."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from dragoman.cli.commands import SETTINGS
from dragoman.cli.settings import load_settings
from dragoman.cli.table import print_table


@click.command(context_settings=SETTINGS)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Tell which kinds of sandbox work here and what the configured ones lack; exits with 1 if one of those does."""
    from dragoman.sandbox.doctor import examine_kinds, examine_sandboxes

    _, loaded = load_settings()
    kinds, sandboxes = examine_kinds(), examine_sandboxes(loaded.config)
    if as_json:
        found = {"kinds": [asdict(each) for each in kinds], "sandboxes": [asdict(each) for each in sandboxes]}
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        colours = {"yes": "green", "no": "red"}
        rows = [[each.kind, "yes" if each.works else "no", each.detail] for each in kinds]
        print_table(["SANDBOX KIND", "WORKS", "WHY"], rows, colours)
        if sandboxes:
            click.echo()
            rows = [[each.name, each.kind, "yes" if each.works else "no", each.detail] for each in sandboxes]
            print_table(["SANDBOX", "KIND", "WORKS", "WHY"], rows, colours)
    ctx.exit(0 if all(each.works for each in sandboxes) else 1)
