"""`dragoman audit`: what agents did, who allowed it, and the proof."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dragoman.audit.browse.table import as_csv, as_ndjson
from dragoman.audit.read import Follower, Query, latest, query, sessions_like, show
from dragoman.cli.audit.show import print_record, print_records
from dragoman.cli.audit.times import Moment
from dragoman.cli.commands import SETTINGS, WholeLines
from dragoman.cli.entry import complain
from dragoman.cli.settings import load_settings
from dragoman.cli.terminal.progress import Progress
from dragoman.config.model import Config
from dragoman.terminal import escape

if TYPE_CHECKING:
    from dragoman.audit.keys import Key
    from dragoman.audit.report import Report

EVERY = click.option(
    "--all",
    "every",
    is_flag=True,
    help="Also records of each command's beginning and end; --json has them always.",
)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
PREFIX = "dgm_"
WHOLE = len(PREFIX) + 24
"""Characters of the id of a session."""
FOLLOW_EVERY = 0.5
"""Seconds between two looks of `tail --follow`."""
MOST = 10_000
"""Records that `query` prints as a table."""

Command = TypeVar("Command", bound=Callable[..., None])


@click.group(cls=WholeLines, context_settings=SETTINGS)
def audit() -> None:
    """Show what agents did and who allowed it, and prove that the record was not changed."""


def _filters(command: Command) -> Command:
    for option in (
        click.option("--unmediated", is_flag=True, help="Only calls that ran without a decision."),
        click.option("--until", type=Moment(), help="Only before this time."),
        click.option("--since", type=Moment(), help="Only since: 30m, 2h, 7d, today, a date."),
        click.option("--kind", help="Only records of this kind, such as decision."),
        click.option("--by", help="Only by this person or rule."),
        click.option("--decision", type=click.Choice(["allow", "deny", "ask"]), help="Only this decision."),
        click.option("--tool", help="Only this tool."),
        click.option("--agent", help="Only this agent."),
        click.option("--session", help="Only this session; its beginning is enough."),
    ):
        command = option(command)
    return command


@audit.command()
@click.option(
    "-n",
    "count",
    default=20,
    type=click.IntRange(1, 10_000),
    metavar="N",
    show_default=True,
    help="Show N records.",
)
@click.option("-f", "--follow", is_flag=True, help="Go on with what is recorded from now on.")
@_filters
@EVERY
@AS_JSON
def tail(count: int, follow: bool, every: bool, as_json: bool, **filters: Any) -> None:
    """Show the latest records."""
    folder, asked = _folder(), _query(filters, bookkeeping=every or as_json)
    follower = Follower(folder) if follow else None
    found = latest(folder, count, asked)
    _print(found, as_json)
    seen = {each["id"] for each in found}  # written while the others were read
    while follower is not None:
        for each in follower.new():
            if each["id"] not in seen and asked.holds(each):
                _print([each], as_json, header=False)
        sys.stdout.flush()
        time.sleep(FOLLOW_EVERY)


@audit.command("query")
@_filters
@click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    default=1000,
    show_default=True,
    help="Show at most N records.",
)
@EVERY
@AS_JSON
def find(limit: int, every: bool, as_json: bool, **filters: Any) -> None:
    """Find records, the oldest first; all options that are given have to hold."""
    found: list[dict[str, Any]] = []
    for each in query(_folder(), _query(filters, bookkeeping=every or as_json)):
        if len(found) == limit:
            complain(f"there are more than {limit}: --limit shows more, --since and other options fewer")
            break
        found.append(each)
    _print(found, as_json)


@audit.command("show")
@click.argument("id")
@AS_JSON
@click.pass_context
def show_one(ctx: click.Context, id: str, as_json: bool) -> None:
    """Show one record in full, by its ID as `--json` prints it (CHAIN:NUMBER)."""
    found = show(_folder(), id)
    if found is None:
        complain(f'there is no record "{id}"; `dragoman audit query --json` prints ids')
        ctx.exit(1)
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
    else:
        print_record(found)


@audit.command()
@click.option("--format", "form", type=click.Choice(["ndjson", "csv"]), default="ndjson", show_default=True)
@_filters
def export(form: str, **filters: Any) -> None:
    """Print all matching records to stdout, as NDJSON or CSV."""
    records = query(_folder(), _query(filters))
    for line in as_ndjson(records) if form == "ndjson" else as_csv(records):
        sys.stdout.write(line)


@audit.command()
@click.option(
    "--anchor",
    "anchors",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file of heads from elsewhere; the configured file: anchors are read anyway.",
)
@click.option(
    "--key", "keys", multiple=True, help="Fingerprint of the only key that counts; may be repeated."
)
@AS_JSON
@click.pass_context
def verify(ctx: click.Context, anchors: tuple[Path, ...], keys: tuple[str, ...], as_json: bool) -> None:
    """Check that nothing was changed, and say what is proved up to when; exit code 1 if something was."""
    from dragoman.audit.verify import verify as check

    folder, config = _settings()
    with Progress() as show_progress:
        report = check(
            folder,
            _heads(anchors, config),
            trusted=keys,
            progress=lambda records: show_progress(f"{records:,} records checked"),
        )
    if as_json:
        click.echo(json.dumps(report.facts(), indent=2, ensure_ascii=False))
        ctx.exit(0 if report.consistent else 1)
    for problem in report.problems:
        click.echo(escape(f"{problem.chain}:{problem.record}: {problem.text}"))
    for note in report.notes:
        click.echo(escape(f"note: {note}"))
    chains = len(report.chains)
    what = f"{report.records} record{'s' * (report.records != 1)} in {chains} chain{'s' * (chains != 1)}"
    if not report.consistent:
        click.echo(f"{what}: NOT CONSISTENT. The records named above were changed, removed or cut off.")
        ctx.exit(1)
    signed = sum(chain.signed >= chain.last for chain in report.chains)
    click.echo(f"{what}: consistent here; {signed} of {chains} signed to the end.")
    click.echo(_proved(report))


def _proved(report: Report) -> str:
    """What a check without problems proves."""
    if report.anchored_up_to is None:
        return (
            "Not anchored elsewhere: who has the key and may write here could have written it anew "
            "(`audit.anchors` keeps signed heads elsewhere)."
        )
    proved = f"Anchored elsewhere up to {report.anchored_up_to}: no record from before was changed"
    if not report.removed:
        return f"{proved} or removed since its head was kept there."
    shown = sum(removal["shown"] for removal in report.removed)
    return (
        f"{proved} since its head was kept there, and none removed but by age, as named above: "
        f"{shown} of {len(report.removed)} removals are shown by heads elsewhere."
    )


@audit.command()
@click.option("--new", is_flag=True, help="Make a new key; the old public key stays for old records.")
@AS_JSON
@click.pass_context
def key(ctx: click.Context, new: bool, as_json: bool) -> None:
    """Show the public key and its fingerprint, to be written down elsewhere."""
    from dragoman.audit.keys import KeyProblem, fingerprint, load_key

    folder = _folder()
    try:
        made = _change_key(folder) if new else load_key(folder)
    except (KeyProblem, OSError, ValueError) as error:
        complain(str(error))
        ctx.exit(1)
    facts = {"fingerprint": fingerprint(made.public), "public": made.public}
    if as_json:
        click.echo(json.dumps(facts))
    else:
        for name, value in facts.items():
            click.echo(f"{name}: {value}")


def _change_key(folder: Path) -> Key:
    """Use a new key, once the old one, if it is still there, has signed that."""
    from dragoman.audit.keys import PUBLIC, draft_key, fingerprint, read_public, replace_key
    from dragoman.cli.audit.tell import tell

    made, old = draft_key(), folder / PUBLIC
    former = fingerprint(read_public(old)) if old.exists() else None
    tell("key_changed", former=former, fingerprint=fingerprint(made.public))
    return replace_key(folder, made)


def _settings() -> tuple[Path, Config]:
    paths, loaded = load_settings(quiet=True)
    return paths.state_dir / "audit", loaded.config


def _folder() -> Path:
    return _settings()[0]


def _query(filters: dict[str, Any], *, bookkeeping: bool = True) -> Query:
    given = {name: value for name, value in filters.items() if value is not None}
    asked = Query(bookkeeping=bookkeeping, **given)
    return replace(asked, session=_whole(asked.session)) if asked.session is not None else asked


def _whole(session: str) -> str:
    """The id of a session that is given by its beginning, as tables show it."""
    if len(session) >= WHOLE:
        return session
    found = sessions_like(_folder(), session if session.startswith(PREFIX) else PREFIX + session)
    if len(found) > 1:
        few = ", ".join(escape(each) for each in found[:5])
        raise click.UsageError(f"{len(found)} sessions begin with {session!r}: {few}")
    return found[0] if found else session


def _heads(given: tuple[Path, ...], config: Config) -> Iterator[bytes]:
    from dragoman.audit.anchors import read_anchor

    configured = [Path(place[5:]) for place in config.audit.anchors if place.startswith("file:")]
    for path in dict.fromkeys([*given, *configured]):
        if path in given or path.is_file():  # what is configured may be replaced by a pipe that never ends
            yield from read_anchor(path)
        else:
            complain(f"the anchor {path} is not there: it proves nothing")


def _print(found: list[dict[str, Any]], as_json: bool, *, header: bool = True) -> None:
    if as_json:
        for each in found:
            click.echo(json.dumps(each, ensure_ascii=False))
    elif found:
        print_records(found, header=header)
    elif header:
        click.echo("There are no such records.")
