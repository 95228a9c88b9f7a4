"""The commands `dragoman rewind` and `dragoman retry`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.changes.command import Checked
from dragoman.cli.changes.restore import SHARED, ask_about_shared, print_files, print_json, settled
from dragoman.cli.commands import AS_JSON, SETTINGS
from dragoman.cli.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.cli.exec.approval import Approve
    from dragoman.config.paths import Paths
    from dragoman.gateway.delivery.conversation.messages import Message
    from dragoman.gateway.json_types import JsonObject

APPROVE = click.option(
    "--approve",
    type=click.Choice(["all", "reads", "none"]),
    help="What the agent may do without asking when it is prompted. [default: ask on a terminal, else none]",
)
AGENT_WORDS = {
    "rewind": "the agent went back by itself",
    "resume": "the agent remembers it",
    "load": "the agent remembers it",
    "seed": "the agent was started anew, and gets a transcript with the next message",
    "": "the agent follows when it is started next",
}
"""How the agent went back, in words."""


@click.command(cls=Checked, context_settings=SETTINGS)
@click.argument("id", required=False)
@click.option("--to", metavar="MESSAGE", help="Back to before this message: its number or its id.")
@click.option("--files", "what", flag_value="files", help="Take back the files alone.")
@click.option(
    "--conversation", "what", flag_value="conversation", help="Take back the conversation alone (default)."
)
@click.option("--both", "what", flag_value="both", help="Take back the conversation and the files.")
@click.option("--resend", metavar="TEXT", help="Send TEXT in place of the message, and print the answer.")
@click.option("--undo", is_flag=True, help="Bring back what the last rewind or revert undid.")
@click.option("--list", "listed", is_flag=True, help="List the messages with their numbers.")
@APPROVE
@SHARED
@AS_JSON
@click.pass_context
def rewind(
    ctx: click.Context,
    /,
    id: str | None,
    to: str | None,
    what: str | None,
    resend: str | None,
    undo: bool,
    listed: bool,
    approve: Approve | None,
    shared: str | None,
    as_json: bool,
) -> None:
    """Take a session back to before one of its messages: its conversation, its files, or both.

    --list shows the messages. Nothing is lost: the journal keeps what is undone, the present files are recorded before,
    and --undo brings both back. With --resend another message is sent in place of that one.
    """
    if (to is not None) + undo + listed != 1:
        raise click.UsageError("give one of --to MESSAGE, --undo and --list")
    if undo and what is not None:
        raise click.UsageError(
            "--undo brings back whatever was undone: leave out --files, --conversation, --both"
        )
    if resend is not None and (to is None or what == "files"):
        raise click.UsageError("--resend needs --to, and the conversation is taken back with it")
    if resend is not None and not resend.strip():
        raise click.UsageError("the text of --resend is empty")
    paths, session = settled(id)
    if listed:
        _list(paths, session, as_json)
        return
    wish: dict[str, Any] = {"undo": True} if undo else {"to": message_named(to), "what": what}
    told = _rewind(session, wish, shared)
    if resend is not None:
        ctx.exit(_prompt(session, resend, [], approve, as_json))
    _print(told, as_json)


@click.command(cls=Checked, context_settings=SETTINGS)
@click.argument("id", required=False)
@click.option("--both", is_flag=True, help="Take the files back to before the message too.")
@APPROVE
@SHARED
@AS_JSON
@click.pass_context
def retry(
    ctx: click.Context,
    /,
    id: str | None,
    both: bool,
    approve: Approve | None,
    shared: str | None,
    as_json: bool,
) -> None:
    """Undo the last message of a session with its answer, send it again, and print the new answer."""
    _, session = settled(id)
    told = _rewind(session, {"retry": True, "what": "both" if both else "conversation"}, shared)
    ctx.exit(_prompt(session, "", told.get("prompt", []), approve, as_json))


def message_named(to: str | None) -> int | str | None:
    """A message as the gateway takes it: a number, or the client's id."""
    return int(to) if to is not None and to.isascii() and to.isdigit() and len(to) < 10 else to


def _rewind(session: str, wish: dict[str, Any], shared: str | None) -> JsonObject:
    from dragoman.gateway.lifecycle.rewinding import REWIND

    return ask_about_shared(session, REWIND, wish, shared)


def _prompt(
    session: str, text: str, content: Sequence[JsonObject], approve: Approve | None, as_json: bool
) -> int:
    """Prompt as `dragoman exec --session` does; returns its exit code."""
    from dragoman.cli.exec import run
    from dragoman.cli.exec.output import Ndjson, Plain

    paths, loaded = load_settings(quiet=True)
    options = run.ExecOptions(text, ".", session=session, approve=approve, content=tuple(content))
    return run.run(options, loaded.config, paths, Ndjson if as_json else Plain)


def _print(told: JsonObject, as_json: bool) -> None:
    if as_json:
        print_json(told)
        return
    count, message = told.get("undone", 0), told.get("message")
    if count:
        agent = AGENT_WORDS.get(str(told.get("agent", "")), "")
        many = f"{count} message{'s' if count != 1 else ''}"
        where = f"before message {message}: {many} undone" if message is not None else f"{many} brought back"
        click.echo(f"{where}; {agent}", err=True)
    if "restored" in told:
        print_files(told["restored"])


# -- the list


def _list(paths: Paths, session: str, as_json: bool) -> None:
    import msgspec

    from dragoman.cli.sessions.find import with_store
    from dragoman.cli.terminal.screen import one_line
    from dragoman.cli.terminal.table import print_table
    from dragoman.gateway.delivery.conversation.messages import read_messages

    found: Sequence[Message] = with_store(paths, lambda store: read_messages(store, session)).all
    if as_json:
        print_json({"messages": msgspec.to_builtins(found)})
        return
    rows = [
        [
            str(one.number),
            one.time[:19].replace("T", " "),
            "undone" if one.undone else "",
            one_line(one.id or "", 20),
            one_line(one.text, 60),
        ]
        for one in found
    ]
    print_table(["MESSAGE", "SENT (UTC)", "", "ID", "TEXT"], rows, {"undone": "yellow"})
