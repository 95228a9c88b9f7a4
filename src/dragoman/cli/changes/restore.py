"""The commands `dragoman revert` and `dragoman rewind`: through the session's owner, or a gateway of their own."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.changes.command import Checked, open_engine, resolve
from dragoman.cli.commands import AS_JSON, SETTINGS
from dragoman.cli.settings import load_settings
from dragoman.terminal import escape

if TYPE_CHECKING:
    from dragoman.cli.sessions.state import View
    from dragoman.config.model import Config
    from dragoman.config.paths import Paths
    from dragoman.gateway.json_types import JsonObject

SHARED = click.option(
    "--shared",
    type=click.Choice(["include", "leave"]),
    help="What to do with changes that not only this session made. [default: ask, or refuse without a terminal]",
)


@click.command(cls=Checked, context_settings=SETTINGS)
@click.argument("id", required=False)
@click.option("--turn", type=click.IntRange(min=1), metavar="N", help="Undo what turn N changed.")
@click.option("--file", metavar="PATH", help="Only this file, as `dragoman changes --stat` names it.")
@click.option("--hunk", type=click.IntRange(min=1), metavar="H", help="Only hunk H of that file.")
@SHARED
@AS_JSON
def revert(
    id: str | None, turn: int | None, file: str | None, hunk: int | None, shared: str | None, as_json: bool
) -> None:
    """Undo what a session changed: all, a turn, a file or a hunk; later changes stay.

    The files are recorded before: `dragoman rewind ID --undo` brings them back.
    """
    if hunk is not None and file is None:
        raise click.UsageError("--hunk needs --file")
    name = (
        file.encode(errors="surrogateescape").decode(errors="backslashreplace") if file is not None else None
    )
    _carry_out(id, {"turn": turn, "file": name, "hunk": hunk}, shared, as_json)


@click.command(cls=Checked, context_settings=SETTINGS)
@click.argument("id", required=False)
@click.option(
    "--to", type=click.IntRange(min=1), metavar="N", help="Back to before message N, that of turn N."
)
@click.option("--files", is_flag=True, help="Take the files back; the conversation stays.")
@click.option("--undo", is_flag=True, help="Bring back what the last rewind or revert changed.")
@SHARED
@AS_JSON
def rewind(
    id: str | None, to: int | None, files: bool, undo: bool, shared: str | None, as_json: bool
) -> None:
    """Take a session's files back to what they were before one of its messages.

    `dragoman changes ID --turns` lists the messages. The present files are recorded before; --undo brings them back.
    """
    if undo == (to is not None):
        raise click.UsageError("give either --to N or --undo")
    if to is not None and not files:
        raise click.UsageError("give --files: conversations cannot be rewound yet")
    _carry_out(id, {"undo": True} if undo else {"to": to}, shared, as_json)


def _carry_out(given: str | None, wish: dict[str, Any], shared: str | None, as_json: bool) -> None:
    import json

    from dragoman.wire.errors import RpcError

    paths, loaded = load_settings(quiet=True)
    session = resolve(*open_engine(), given)
    asked = {name: value for name, value in wish.items() if value is not None}
    if shared is not None:
        asked["shared"] = shared
    try:
        told = asyncio.run(_restore(session, asked, loaded.config, paths))
    except RpcError as error:
        paths_shared = error.data.get("paths") if isinstance(error.data, dict) else None
        if not paths_shared or sys.stdin is None or not sys.stdin.isatty():
            raise RpcError(error.code, error.message + _hint(paths_shared), error.data) from error
        asked["shared"] = _ask(paths_shared)
        told = asyncio.run(_restore(session, asked, loaded.config, paths))
    if as_json:
        click.echo(json.dumps(told, indent=2))
        return
    for path in told.get("files", []):
        click.echo(escape(path))
    for path in told.get("left", []):
        click.echo(f"left as it is: {escape(path)}", err=True)
    if not told.get("files"):
        click.echo("Nothing had to be changed.", err=True)


def _hint(shared: object) -> str:
    return ": --shared include undoes them too, --shared leave does not" if shared else ""


def _ask(shared: list[str]) -> str:
    click.echo("Not only this session changed:", err=True)
    for path in shared[:20]:
        click.echo(f"  {escape(path)}", err=True)
    if len(shared) > 20:
        click.echo(f"  and {len(shared) - 20} more", err=True)
    choice = click.prompt(
        "Undo these too (include), leave them (leave), or stop", type=click.Choice(["include", "leave", "stop"]),
        default="stop", err=True,
    )  # fmt: skip
    if choice == "stop":
        raise click.Abort
    return str(choice)


async def _restore(session: str, wish: dict[str, Any], config: Config, paths: Paths) -> JsonObject:
    from dragoman.cli.conversation import Conversation
    from dragoman.cli.sessions.find import find, reading
    from dragoman.cli.sessions.state import look
    from dragoman.gateway.lifecycle.restoring import RESTORE

    limit = config.limits.max_message_bytes
    async with reading(paths) as store:
        (view,) = await look(store, [await find(store, session)], limit)
    params: JsonObject = {"sessionId": session, **wish}
    if view.address is None:
        return await _inside(view, params, config, paths)
    owner = await Conversation.with_owner(view.address, limit)
    try:
        return await owner.result(RESTORE, params)
    finally:
        owner.hang_up()


async def _inside(view: View, params: JsonObject, config: Config, paths: Paths) -> JsonObject:
    """In a gateway of this process, which takes the session over without starting its agent."""
    from dragoman.cli.compose import gateway
    from dragoman.cli.conversation import Conversation
    from dragoman.gateway.access.client import Terms
    from dragoman.gateway.lifecycle.restoring import RESTORE

    async with gateway(config, paths) as running:
        client = await Conversation.inside(running, Terms(start_ahead=False, leave_turns=True))
        meta = {"dragoman": {"wake": False}}
        setup = {"sessionId": view.record.id, "cwd": view.record.cwd, "mcpServers": [], "_meta": meta}
        await client.result("session/resume", setup)
        try:
            return await client.result(RESTORE, params)
        finally:
            await client.disconnect()
