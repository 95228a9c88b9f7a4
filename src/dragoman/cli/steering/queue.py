"""`dragoman queue`: the prompts that wait in a session, whichever process has it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from dragoman.cli.commands import SETTINGS, Reporting
from dragoman.cli.steering.change import change, find_view

if TYPE_CHECKING:
    from dragoman.client import Session
    from dragoman.client.session import QueuedPrompt

ACTIONS = ("list", "edit", "withdraw")
WORDS = {"list": (), "edit": ("PROMPT", "TEXT"), "withdraw": ("PROMPT",)}
WIDTH = 72


@click.command(cls=Reporting, context_settings=SETTINGS)
@click.argument("id")
@click.argument("action", type=click.Choice(ACTIONS), default="list")
@click.argument("words", nargs=-1, metavar="[PROMPT [TEXT]]")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON, with the whole prompts.")
def queue(id: str, action: str, words: tuple[str, ...], as_json: bool) -> None:
    """List, edit or withdraw the prompts that wait for the end of a session's turn (sessions.queue)."""
    expected = WORDS[action]
    if len(words) != len(expected):
        raise click.UsageError(
            f"`{action}` takes {' and '.join(expected) or 'nothing more'}: dragoman queue ID {action} "
            f"{' '.join(expected)}".rstrip()
        )
    view = find_view(id)

    async def work(session: Session) -> list[QueuedPrompt]:
        if action == "edit":
            await session.edit_queued(*words)
        elif action == "withdraw":
            await session.withdraw_queued(*words)
        return await session.queue()

    waiting = change(view, work) if view.live or action != "list" else []  # elsewhere nothing waits
    if action != "list":
        click.echo(f"{'edited' if action == 'edit' else 'withdrew'} {words[0]}: {len(waiting)} waiting")
    elif as_json:
        click.echo(json.dumps([_shape(prompt) for prompt in waiting], indent=2, ensure_ascii=False))
    elif not waiting:
        click.echo(f"no prompt waits in {view.record.id}", err=True)
    else:
        _print(waiting)


def _shape(prompt: QueuedPrompt) -> dict[str, object]:
    return {
        "id": prompt.id,
        "promptedBy": prompt.prompted_by,
        "edited": prompt.edited,
        "prompt": list(prompt.prompt),
    }


def _print(waiting: list[QueuedPrompt]) -> None:
    from dragoman.cli.terminal.screen import one_line
    from dragoman.cli.terminal.table import print_table

    rows = []
    for prompt in waiting:
        text = " ".join(str(block.get("text", f"[{block.get('type')}]")) for block in prompt.prompt)
        by = f"{prompt.prompted_by} (edited)" if prompt.edited else prompt.prompted_by
        rows.append([one_line(prompt.id), one_line(by), one_line(text, WIDTH)])
    print_table(["PROMPT", "FROM", "TEXT"], rows)
