"""`dragoman doctor`: runs the checks, prints what they find, and repairs what can be repaired safely."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import replace

import click

from dragoman.agents.known import known_layer
from dragoman.cli.commands import AS_JSON, SETTINGS
from dragoman.cli.doctor.checks import CHECKS
from dragoman.cli.doctor.finding import Check, Context, Finding, Reported, counted
from dragoman.cli.doctor.repairing import repair_all
from dragoman.cli.doctor.running import run_checks
from dragoman.cli.entry import complain
from dragoman.cli.settings import here, load_settings
from dragoman.cli.terminal.progress import Progress
from dragoman.config.errors import ConfigError
from dragoman.config.load import load
from dragoman.config.paths import Paths, find_paths
from dragoman.terminal import escape, style

COLOURS = {"ok": "green", "fixed": "green", "warning": "yellow", "error": "red"}
SCHEMA = 1
"""Version of what `--json` prints; fields may be added to it."""
ROUNDS = 3
"""How often repairs and checks follow each other: a repair may show what was hidden before."""
INDENT = " " * 11


@click.command(context_settings=SETTINGS)
@click.argument("names", nargs=-1, metavar="[CHECK]...", type=click.Choice([check.name for check in CHECKS]))
@click.option("--fix", is_flag=True, help="Repair what can be repaired safely; asks before.")
@click.option("-y", "--yes", is_flag=True, help="Repair without asking.")
@click.option(
    "--timeout", type=click.FloatRange(min=0.1), metavar="SECONDS", help="Let each check take so long."
)
@AS_JSON
@click.pass_context
def doctor(
    ctx: click.Context, names: tuple[str, ...], fix: bool, yes: bool, timeout: float | None, as_json: bool
) -> None:
    """Look at everything that Dragoman needs; say what is wrong and how to mend it.

    Without CHECK it makes all of them. The exit code is 1 if there is an error, 0 if all is well or there are only
    warnings.
    """
    paths = find_paths()
    chosen = [check for check in CHECKS if not names or check.name in names]
    if (refused := _refused(paths)) is not None:
        found = [refused]
    else:
        context = _context(paths)
        found = _look(chosen, context, timeout)
        if fix:
            found = _fix(found, chosen, context, timeout, yes=yes)
    _print(found, as_json=as_json, fix=fix)
    ctx.exit(1 if any(one.finding.level == "error" for one in found) else 0)


def _refused(paths: Paths) -> Reported | None:
    """A folder that others may write to: nothing in it is read, since others may have chosen what it says."""
    try:
        paths.check()
    except ConfigError as error:
        what, _, fix = str(error).partition(": ")
        return Reported("configuration", Finding("error", "folder", what, fix))
    return None


def _context(paths: Paths) -> Context:
    try:
        _, loaded = load_settings(quiet=True)
    except ConfigError as error:
        absent = replace(paths, config_file=paths.state_dir / "no-configuration" / "config.toml")
        defaults = load(absent, known=known_layer(), environ={})
        return Context(paths, defaults, trouble=str(error), workspace=here())
    return Context(paths, loaded, workspace=here())


def _look(checks: Sequence[Check], context: Context, timeout: float | None) -> list[Reported]:
    with Progress() as show:
        said = [""]

        def told(waiting: Sequence[str]) -> None:
            show(f"looking at {', '.join(waiting)} {said[0]}")

        def say(text: str) -> None:
            said[0] = f"({text})"

        return run_checks(checks, replace(context, say=say), timeout, told)


def _fix(
    found: list[Reported], checks: Sequence[Check], context: Context, timeout: float | None, *, yes: bool
) -> list[Reported]:
    """Repair what was found and look again, until nothing more can be repaired."""
    done: dict[tuple[str, str], Reported] = {}
    for _ in range(ROUNDS):
        wanted = [one for one in found if one.finding.repair is not None and _key(one) not in done]
        if not wanted or not (yes or _agreed(wanted)):
            break
        repaired = repair_all(wanted)
        done |= {_key(before): after for before, after in zip(wanted, repaired, strict=True)}
        touched = {one.check for one in wanted}
        fresh = _look([check for check in checks if check.name in touched], context, timeout)
        found = [
            one
            for check in checks
            for one in (fresh if check.name in touched else found)
            if one.check == check.name
        ]
    failed = [key for key, one in done.items() if one.finding.level != "fixed"]
    fixed = [one for one in done.values() if one.finding.level == "fixed"]
    left = [done[_key(one)] if _key(one) in failed else one for one in found]
    return [one for check in checks for group in (fixed, left) for one in group if one.check == check.name]


def _key(one: Reported) -> tuple[str, str]:
    return one.check, one.finding.about


def _agreed(wanted: Sequence[Reported]) -> bool:
    """Whether a person wants these repairs."""
    if sys.stdin is None or not sys.stdin.isatty():
        complain(f"nothing was repaired: --yes makes {counted(len(wanted), 'repair')} without asking")
        return False
    for one in wanted:
        click.echo(f"{one.finding.about}: {escape(one.finding.detail)}: {escape(one.finding.fix)}", err=True)
    return click.confirm(f"Make {counted(len(wanted), 'repair')}?", err=True)


def _print(found: Sequence[Reported], *, as_json: bool, fix: bool) -> None:
    numbers = {level: sum(one.finding.level == level for one in found) for level in COLOURS}
    if as_json:
        facts = {
            "version": SCHEMA,
            "ok": not numbers["error"],
            "counts": numbers,
            "findings": [one.facts() for one in found],
        }
        click.echo(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    width = shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else 0
    last = ""
    for one in found:
        if one.check != last:
            click.echo(style(one.check, bold=True))
            last = one.check
        _print_finding(one.finding, width)
    repairs = sum(one.finding.repair is not None for one in found)
    more = f"; `dragoman doctor --fix` repairs {repairs} of them" if repairs and not fix else ""
    told = (
        ("error", counted(numbers["error"], "error")),
        ("warning", counted(numbers["warning"], "warning")),
        ("fixed", f"{numbers['fixed']} fixed"),
    )
    click.echo(", ".join(text for level, text in told if numbers[level]) + more or "all is well")


def _print_finding(finding: Finding, width: int) -> None:
    mark = style(f"{finding.level:<7}", fg=COLOURS[finding.level])
    text = escape(f"{finding.about}: {finding.detail}")
    lines = [text, *([f"→ {escape(finding.fix)}"] if finding.fix else [])]
    if width > len(INDENT) + 30:
        room = width - len(INDENT)
        lines = [part for line in lines for part in textwrap.wrap(line, room, break_on_hyphens=False)]
    click.echo(f"  {mark}  {lines[0]}")
    for line in lines[1:]:
        click.echo(f"{INDENT}{line}")
