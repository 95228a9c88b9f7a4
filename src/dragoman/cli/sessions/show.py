"""One session in detail, as text or as JSON."""

from __future__ import annotations

from typing import Any

import click

from dragoman.cli.sessions.history import History, TurnFacts
from dragoman.cli.sessions.state import View, ago
from dragoman.cli.terminal.approvals import approval_lines
from dragoman.cli.terminal.narrator import describe_tool
from dragoman.cli.terminal.screen import one_line
from dragoman.gateway.json_types import as_object
from dragoman.terminal import style

SHOWN_LOSSES = 5
RUNNING = frozenset({"working", "silent"})


def as_json(view: View, history: History) -> dict[str, Any]:
    quiet = history.quiet_for()
    facts = {
        **view.as_json(),
        **history.as_json(),
        "quietSeconds": round(quiet) if quiet is not None else None,
    }
    if not view.live:
        facts["question"] = None
    return facts


def print_session(view: View, history: History) -> None:
    record = view.record
    click.echo(style((record.title and one_line(record.title)) or record.id, bold=True))
    own_id = f" (its own id: {record.agent_session_id})" if record.agent_session_id else ""
    facts = {
        "id": record.id,
        "state": _state(view, history),
        "agent": f"{record.agent}{own_id}",
        "folder": record.cwd,
        "sandbox": record.sandbox,
        "forked from": record.forked_from,
        "created": f"{record.created_at} ({ago(record.created_at)})",
        "updated": f"{record.updated_at} ({ago(record.updated_at)})",
        "events": _events(view),
        "lost": ", ".join(
            f"{first} to {last}" if first != last else f"{first}"
            for first, last in history.lost[:SHOWN_LOSSES]
        )
        + (" and more" if len(history.lost) > SHOWN_LOSSES else ""),
    }
    for label, fact in facts.items():
        if fact:
            click.echo(f"  {style(label.ljust(11), dim=True)} {fact}")
    if view.live and history.question is not None:
        _print_question(history)
    if history.turns:
        _print_turns(list(history.turns), history.turn_count, running=view.live)
    if lines := history.last_events():
        click.echo("\nLast events")
        for line in lines:
            click.echo(f"  {style(str(line['seq']).rjust(6), dim=True)}  {line['who']}: {line['text']}")


def _state(view: View, history: History) -> str:
    quiet = history.quiet_for()
    if view.live and view.state in RUNNING and quiet is not None:
        return (
            f"{view.words} for {quiet:.0f} s"
            if view.state == "silent"
            else (f"{view.words}, last event {quiet:.0f} s ago")
        )
    return view.words if view.live or view.state == "closed" else f"{view.words}, not running"


def _events(view: View) -> str:
    record = view.record
    pruned = f", the first {record.first_seq - 1} were removed" if record.first_seq > 1 else ""
    return f"{record.last_seq}{pruned}"


def _print_question(history: History) -> None:
    question = history.question or {}
    offered = question.get("options")
    names = [str(as_object(option).get("name")) for option in offered] if isinstance(offered, list) else []
    click.echo(f"\nOpen question\n  {describe_tool(as_object(question.get('toolCall')))}: {', '.join(names)}")
    for line in approval_lines(as_object(question.get("approval"))):
        click.echo(f"  {line}")


def _print_turns(turns: list[TurnFacts], count: int, *, running: bool) -> None:
    click.echo(f"\nTurns{f', the last {len(turns)} of {count}' if count > len(turns) else ''}")
    for turn in turns:
        outcome = turn.outcome or ("running" if running else "interrupted")
        shown = "undone" if turn.undone else outcome
        click.echo(f"  {str(turn.number).rjust(4)}  {turn.time}  {shown.ljust(9)}  {turn.prompt}")
