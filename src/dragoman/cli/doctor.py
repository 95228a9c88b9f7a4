"""`dragoman doctor`: what is wrong with the store and the audit, and which kinds of sandbox work on this machine."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click
import msgspec

from dragoman.cli.commands import AS_JSON, SETTINGS
from dragoman.cli.settings import load_settings
from dragoman.cli.terminal.table import print_table

COLOURS = {"yes": "green", "no": "red", "ok": "green", "warning": "yellow", "error": "red", "fixed": "green"}


@click.command(context_settings=SETTINGS)
@AS_JSON
@click.option("--fix", is_flag=True, help="Repair what can be repaired safely.")
@click.pass_context
def doctor(ctx: click.Context, as_json: bool, fix: bool) -> None:
    """Look at the stored sessions, the audit, the kinds of sandbox and those that are configured.

    Every session and every record is read. Exits with 1 if something is wrong with a session, the audit or a configured
    sandbox.
    """
    from dragoman.cli.audit.examine import examine
    from dragoman.sandbox.doctor import examine_kinds, examine_sandboxes

    paths, loaded = load_settings()
    store = _store(paths.database, fix)
    audit = [asdict(finding) for finding in examine(paths.audit_dir, loaded.config.audit)]
    if fix and loaded.config.sessions.search:
        store += _search(paths.state_dir)
    kinds, sandboxes = examine_kinds(), examine_sandboxes(loaded.config)
    if as_json:
        found = {
            "store": store,
            "audit": audit,
            "kinds": [asdict(kind) for kind in kinds],
            "sandboxes": [asdict(sandbox) for sandbox in sandboxes],
        }
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        rows = [
            [finding["level"], finding["about"], finding["detail"], finding["advice"]]
            for finding in (*store, *audit)
        ]
        print_table(["STORE", "ABOUT", "WHAT", "WHAT TO DO"], rows, COLOURS)
        click.echo()
        rows = [[kind.kind, "yes" if kind.works else "no", kind.detail] for kind in kinds]
        print_table(["SANDBOX KIND", "WORKS", "WHY"], rows, COLOURS)
        if sandboxes:
            click.echo()
            rows = [
                [sandbox.name, sandbox.kind, "yes" if sandbox.works else "no", sandbox.detail]
                for sandbox in sandboxes
            ]
            print_table(["SANDBOX", "KIND", "WORKS", "WHY"], rows, COLOURS)
    broken = any(finding["level"] == "error" for finding in (*store, *audit)) or not all(
        sandbox.works for sandbox in sandboxes
    )
    ctx.exit(1 if broken else 0)


def _search(state: Path) -> list[dict[str, str]]:
    """Read what is new, or everything if the index was removed; told only if that fails."""
    from dragoman.gateway.ports.search import SearchUnavailable
    from dragoman.search.lookup import read_all
    from dragoman.upkeep.check import Finding

    try:
        read_all(state)
    except SearchUnavailable as error:
        return [msgspec.to_builtins(Finding("warning", "search", str(error)))]
    return []


def _store(database: Path, fix: bool) -> list[dict[str, str]]:
    """The findings of the check, each as level, about, detail and advice; with `fix` they are repaired if possible."""
    from dragoman.gateway.ports.store import StoreError
    from dragoman.upkeep.check import Finding, Fix, check

    found = []
    for each in check(database):
        finding = each.finding if isinstance(each, Fix) else each
        if fix and isinstance(each, Fix):
            try:
                each.do()
                finding = Finding("fixed", finding.about, each.done or finding.detail)
            except (StoreError, OSError) as error:
                detail = f"{finding.detail}; not repaired: {error}"
                finding = Finding(finding.level, finding.about, detail, finding.advice)
        found.append(msgspec.to_builtins(finding))
    return found
