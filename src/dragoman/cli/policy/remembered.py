"""`dragoman policy remembered` and `forget`: answers that a person had us remember."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.audit.tell import tell
from dragoman.cli.settings import load_settings
from dragoman.cli.terminal.table import print_table

if TYPE_CHECKING:
    from dragoman.config.model import PolicyConfig
    from dragoman.config.paths import Paths
    from dragoman.policy.memory.file import Remembered
    from dragoman.policy.memory.memory import Memory

AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command()
@AS_JSON
@click.pass_context
def remembered(ctx: click.Context, as_json: bool) -> None:
    """List what a person answered for longer than once, and where it holds; exit code 1 if the file is broken."""
    kept = _open()
    memories, problem = kept.all(), kept.broken
    if as_json:
        told = {"remembered": [memory.facts() for memory in memories], "problem": problem}
        click.echo(json.dumps(told, indent=2, ensure_ascii=False))
    elif problem is not None:
        click.echo(problem, err=True)
    elif not memories:
        click.echo("Nothing is remembered.")
    else:
        rows = [[one.id, one.decision, one.words, _where(one), one.until or "", one.who] for one in memories]
        colours = {"deny": "red", "allow": "green"}
        print_table(["ID", "DECISION", "WHAT", "WHERE", "UNTIL", "BY"], rows, colours)
    ctx.exit(1 if problem is not None else 0)


@click.command()
@click.argument("id")
@AS_JSON
def forget(id: str, as_json: bool) -> None:
    """Forget one remembered answer; what it allowed is asked again, also in sessions that run."""
    from dragoman.policy.memory.pattern import NotRemembered

    kept = _open()
    known = next((memory for memory in kept.all() if memory.id == id), None)
    if known is not None:
        tell("answer_forgotten", remembered=known.facts())
    try:
        gone = kept.forget(id)
    except NotRemembered as error:
        raise click.ClickException(str(error)) from error
    if gone is None:
        raise click.ClickException(
            f"nothing is remembered under {id!r}: `dragoman policy remembered` lists ids"
        )
    if as_json:
        click.echo(json.dumps({"forgotten": gone.facts()}, indent=2, ensure_ascii=False))
    else:
        click.echo(f"Forgotten: {gone.words}, {_where(gone)}.")


WITHOUT = click.option(
    "--without-remembered", "without", is_flag=True, help="Leave out what a person had Dragoman remember."
)


def answers_in_force(paths: Paths, config: PolicyConfig, *, without: bool = False) -> Remembered:
    """What decides besides the rules: nothing with `without`, and where each agent remembers for itself."""
    from dragoman.policy.memory.file import FILE, Remembered

    kept = Remembered(None if without or config.remember != "gateway" else paths.state_dir / FILE)
    if kept.broken is not None:
        click.echo(kept.broken, err=True)
    return kept


def memory_facts(kept: Remembered, rule: str) -> dict[str, Any]:
    """The memory that a verdict names as its rule, for JSON; empty if it names none."""
    found = next((memory for memory in kept.all() if memory.name == rule), None)
    return {"remembered": found.facts()} if found is not None else {}


def memory_line(told: dict[str, Any]) -> str:
    """The memory in `memory_facts`, for people."""
    memory = told["remembered"]
    until = f" until {memory['until']}" if memory["until"] else ""
    return f"{memory['words']}{until}; `dragoman policy forget {memory['id']}` takes it back"


def _open() -> Remembered:
    from dragoman.policy.memory.file import FILE, Remembered

    paths, _ = load_settings(quiet=True)
    return Remembered(paths.state_dir / FILE)


def _where(memory: Memory) -> str:
    return {"session": f"session {memory.session}", "project": memory.root}.get(memory.scope, "everywhere")
