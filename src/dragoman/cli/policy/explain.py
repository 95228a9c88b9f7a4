"""`dragoman policy explain`: how a tool call was decided, and what the rules of today say about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.policy.remembered import WITHOUT, answers_in_force, memory_facts, memory_line
from dragoman.cli.settings import load_settings
from dragoman.config.errors import ConfigError
from dragoman.terminal import style

if TYPE_CHECKING:
    from dragoman.config.paths import Paths
    from dragoman.gateway.delivery.decisions import Decided
    from dragoman.gateway.ports.store import SessionRecord
    from dragoman.policy.decide import Verdict
    from dragoman.store import FileStore

SHOWN_CALLS = 10


@click.command()
@click.argument("call", metavar="SESSION[:CALL]")
@WITHOUT
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def explain(call: str, without: bool, as_json: bool) -> None:
    """Explain how a tool call was decided: what was seen, which level and rule decided, who answered and when.

    CALL is the id of the tool call; without it, the session's last call that was decided. Also says what would be
    decided today, by rules and remembered answers.
    """
    from dragoman.cli.sessions.find import with_store

    paths, _ = load_settings(quiet=True)
    session, _, wanted = call.partition(":")
    record, found = with_store(paths, lambda store: _find(store, session, wanted))
    today, memory = _today(paths, record, found[-1], without)
    if as_json:
        facts = _facts(record, found, today)
        facts["today"] |= memory
        click.echo(json.dumps(facts, indent=2, ensure_ascii=False))
    else:
        _print(record, found, today)
        if memory:
            click.echo(f"       {memory_line(memory)}")


async def _find(store: FileStore, session: str, call: str) -> tuple[SessionRecord, list[Decided]]:
    from dragoman.cli.sessions.find import find
    from dragoman.gateway.delivery.decisions import decisions_of

    record = await find(store, session)
    decided = await decisions_of(store, record.id)
    calls = list(dict.fromkeys(one.call for one in decided))
    if not calls:
        raise ConfigError(f"nothing was asked or decided in the session {record.id}")
    matching = [one for one in calls if one.startswith(call)] if call else calls[-1:]
    exact = call if call in calls else matching[0] if len(matching) == 1 else None
    if exact is None:
        shown = "\n".join(f"  {record.id}:{one}" for one in (matching or calls)[-SHOWN_CALLS:])
        raise ConfigError(
            f'"{call}" is {"the beginning of several calls" if matching else "no call"}; decided ones are:\n{shown}'
        )
    return record, await decisions_of(store, record.id, exact)


def _today(
    paths: Paths, record: SessionRecord, decided: Decided, without: bool
) -> tuple[Verdict, dict[str, Any]]:
    """What is decided now about the same call in the same surroundings, and the memory that does, if one does."""
    from dragoman.agents.known import known_layer
    from dragoman.config.load import load
    from dragoman.config.root import find_root
    from dragoman.policy.load import load_policy
    from dragoman.policy.requests.request import Surroundings, act_of_request

    workspace = find_root(Path(record.cwd))
    loaded = load(paths, known=known_layer(), workspace=workspace)
    made, warnings = load_policy(loaded, paths)
    for warning in warnings:
        click.echo(warning, err=True)
    then = decided.policy.get("act")
    facts = then if isinstance(then, dict) else {}
    around = Surroundings(
        agent=record.agent,
        session=record.id,
        cwd=record.cwd,
        workspace=str(facts.get("workspace") or workspace),
        prompted_by=str(facts.get("promptedBy") or "local"),
        mode=str(facts.get("mode") or ""),
        boxed=facts.get("boxed") is True,
        watched=facts.get("watched") is True,
    )
    kept = answers_in_force(paths, loaded.config.policy, without=without)
    act = act_of_request(decided.known, around)
    verdict = made.decide(act, kept.rules(act))
    return verdict, memory_facts(kept, verdict.rule)


def _facts(record: SessionRecord, found: list[Decided], today: Verdict) -> dict[str, Any]:
    last = found[-1]
    return {
        "session": record.id,
        "call": last.call,
        "title": last.title,
        "decisions": [_decision(one) for one in found],
        "order": _order(last.policy),
        "act": last.policy.get("act"),
        "today": today.facts(),
    }


def _decision(decided: Decided) -> dict[str, Any]:
    policy, answer = decided.policy, decided.decision
    asked = decided.question
    return {
        "result": decided.word,
        "by": answer.get("by"),
        "at": answer.get("time"),
        "seq": answer.get("seq"),
        "client": answer.get("client"),
        "identity": answer.get("identity"),
        "rule": policy.get("rule") or (policy.get("by") if not asked else None),
        "why": policy.get("why"),
        "level": policy.get("level"),
        "asked": {"at": asked.get("time"), "seq": asked.get("seq")} if asked else None,
        "approvals": [{"by": one.get("by"), "at": one.get("time")} for one in decided.approvals],
    }


def _order(policy: dict[str, Any]) -> list[dict[str, Any]]:
    """Each level of authority, and what it said: the first that says something decides."""
    from dragoman.policy.decide import LEVELS

    level = policy.get("level")
    if not isinstance(level, int):
        return []
    return [
        {
            "level": number,
            "name": name,
            "says": policy.get("why") if number == level else "nothing" if number < level else None,
        }
        for number, name in enumerate(LEVELS, 1)
    ]


def _print(record: SessionRecord, found: list[Decided], today: Verdict) -> None:
    from dragoman.cli.terminal.screen import one_line

    last = found[-1]
    click.echo(f"{style(one_line(last.title), bold=True)}  {record.id}:{last.call}")
    for decided in found:
        if decided.question:
            click.echo(f"  asked     {decided.question['time']}")
        for approval in decided.approvals:
            click.echo(f"  approved  {approval['time']}  by {approval.get('by')}")
        if decided.decision:
            click.echo(f"  {decided.word.ljust(9)} {decided.decision['time']}  by {one_line(decided.by)}")
        else:
            click.echo("  open      no answer yet")
    if order := _order(last.policy):
        click.echo("\nOrder of authority")
        for step in order:
            says = step["says"] if step["says"] is not None else "not reached"
            click.echo(f"  {step['level']}  {step['name'].ljust(43)} {one_line(says)}")
    else:
        said = last.policy.get("why")
        click.echo(f"\nWhat the rules said: {one_line(str(said))}" if said else "\nNo rule was recorded.")
    if isinstance(act := last.policy.get("act"), dict):
        click.echo("\nWhat was seen")
        for line in seen_lines(act):
            click.echo(f"  {one_line(line)}")
    click.echo(f"\nToday  {today.decision}: {one_line(today.why)}")


def seen_lines(act: dict[str, Any]) -> list[str]:
    """The facts of an act, a line each."""
    lines = [f"runs     {' '.join([*one['words'], *one['redirects']])}" for one in act["commands"]]
    lines += [
        f"{one['access'] + 's':8} {one['path']}{'  (outside the workspace)' if one['outside'] else ''}"
        for one in act["paths"]
    ]
    lines += [f"reaches  {host}" for host in act["hosts"]]
    if act["opaque"]:
        lines.append(f"unknown  {act['opaque']}")
    if act["labelOnly"]:
        lines.append(f"label    only the agent says that it is of kind {act['kind']}")
    return lines or [f"kind     {act['kind']}"]
