"""`dragoman policy`: show, check and try the rules."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.audit.replay import replay
from dragoman.cli.commands import SETTINGS, WholeLines
from dragoman.cli.policy.edit import edit
from dragoman.cli.policy.explain import explain, seen_lines
from dragoman.cli.policy.remembered import (
    WITHOUT,
    answers_in_force,
    forget,
    memory_facts,
    memory_line,
    remembered,
)
from dragoman.cli.settings import load_settings
from dragoman.cli.terminal.table import print_table

if TYPE_CHECKING:
    from dragoman.config.load import Loaded
    from dragoman.config.paths import Paths
    from dragoman.policy.decide import Policy, Verdict
    from dragoman.policy.rules import Rule

AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
CWD = click.option(
    "--cwd",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of the session [default: the current one].",
)


@click.group(cls=WholeLines, context_settings=SETTINGS)
def policy() -> None:
    """Show, check and try the rules that answer permission questions."""


policy.add_command(remembered)
policy.add_command(forget)
policy.add_command(explain)
policy.add_command(edit)
policy.add_command(replay)


@policy.command()
@CWD
@AS_JSON
def show(cwd: Path | None, as_json: bool) -> None:
    """Show the rules in force, in the order of their authority."""
    from dragoman.policy.decide import policy_facts

    made, _ = _load(cwd)
    rules = [*made.administrator, *made.narrow, *made.user]
    if as_json:
        click.echo(json.dumps(policy_facts(made), indent=2, ensure_ascii=False))
        return
    if not rules:
        click.echo(
            "There are no rules: permission requests go to a person, writes to protected places are denied."
        )
        return
    rows = [[rule.source, rule.name, rule.decision, _conditions(rule)] for rule in rules]
    print_table(
        ["FROM", "RULE", "DECISION", "WHEN"], rows, {"deny": "red", "allow": "green", "ask": "yellow"}
    )


@policy.command()
@CWD
@AS_JSON
@click.pass_context
def check(ctx: click.Context, cwd: Path | None, as_json: bool) -> None:
    """Find rules that cannot match, contradict themselves or fail their own examples; exit code 1 if there are any.

    Warns about rules that allow every command, and about files that other users may write.
    """
    from dragoman.policy.check import check_policy

    made, loaded = _load(cwd)
    found = check_policy(made, list(loaded.config.agents))
    problems = [one for one in found if one.severity == "error"]
    warnings = [one for one in found if one.severity == "warning"]
    if as_json:
        shown = {
            name: [{"file": one.file, "rule": one.rule, "problem": one.text} for one in listed]
            for name, listed in (("problems", problems), ("warnings", warnings))
        }
        click.echo(json.dumps({"ok": not problems, **shown}, indent=2, ensure_ascii=False))
    else:
        for problem in problems:
            click.echo(str(problem))
        for warning in warnings:
            click.echo(f"warning: {warning}")
        if not problems:
            count = len(made.user) + len(made.narrow) + len(made.administrator)
            click.echo(f"{count} rule{'' if count == 1 else 's'}, no problem found")
    ctx.exit(1 if problems else 0)


@policy.command()
@click.argument("command", required=False, default="")
@click.option("--kind", default="", help="Kind of the tool call, if there is no COMMAND.  [default: execute]")
@click.option("--agent", default="", help="Name of the agent.")
@click.option("--mode", default="", help="Mode of the session.")
@click.option("--tool", default="", help="Name of the tool.")
@click.option("--session", default="", help="Id of a session, for what holds in it alone.")
@WITHOUT
@CWD
@AS_JSON
def test(
    command: str,
    kind: str,
    agent: str,
    mode: str,
    tool: str,
    session: str,
    without: bool,
    cwd: Path | None,
    as_json: bool,
) -> None:
    """Decide about COMMAND, a shell line, without running it.

    Prints the decision, the rule or the remembered answer that made it, why, and the facts that were seen.
    """
    from dragoman.config.root import find_root
    from dragoman.policy.load import act_of_command

    if not (command or kind or tool):
        raise click.UsageError('nothing to decide: give a shell line such as "git status", --kind or --tool')
    made, loaded = _load(cwd)
    folder = os.path.realpath(cwd if cwd is not None else Path.cwd())
    workspace = str(find_root(Path(folder)))
    act = act_of_command(
        command,
        cwd=folder,
        workspace=workspace,
        kind=kind or "execute",
        agent=agent,
        mode=mode,
        tool=tool,
        session=session,
    )
    paths, _ = load_settings(quiet=True)
    kept = answers_in_force(paths, loaded.config.policy, without=without)
    verdict = made.decide(act, kept.rules(act))
    memory = memory_facts(kept, verdict.rule)
    if as_json:
        click.echo(json.dumps({**verdict.facts(), **memory}, indent=2, ensure_ascii=False))
    else:
        _print(verdict, memory)


def _load(cwd: Path | None) -> tuple[Policy, Loaded]:
    from dragoman.agents.known import known_layer
    from dragoman.config.load import load
    from dragoman.config.root import find_root
    from dragoman.policy.load import load_policy

    paths: Paths
    paths, loaded = load_settings(quiet=True)
    if cwd is not None:
        loaded = load(paths, known=known_layer(), workspace=find_root(cwd.absolute()))
    made, warnings = load_policy(loaded, paths)
    for warning in warnings:
        click.echo(warning, err=True)
    return made, loaded


def _conditions(rule: Rule) -> str:
    from dragoman.policy.decide import rule_facts

    hidden = ("name", "from", "file", "decision", "match", "not_match", "reason")
    shown = {key: value for key, value in rule_facts(rule).items() if key not in hidden}
    return (
        "; ".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in shown.items())
        or "always"
    )


def _print(verdict: Verdict, memory: dict[str, Any]) -> None:
    click.echo(f"{verdict.decision}: {verdict.why}")
    if memory:
        click.echo(f"  memory   {memory_line(memory)}")
    for line in seen_lines(verdict.act.facts()):
        click.echo(f"  {line}")
