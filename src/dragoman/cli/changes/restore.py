"""The command `dragoman revert`, and how it and `rewind` reach a session: its owner, or a gateway of their own."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.changes.command import Checked, open_engine, resolve
from dragoman.cli.commands import AS_JSON, SETTINGS
from dragoman.cli.settings import load_settings
from dragoman.terminal import escape, escape_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.config.model import Config
    from dragoman.config.paths import Paths
    from dragoman.gateway.json_types import JsonObject
    from dragoman.gateway.ports.store import SessionRecord
    from dragoman.wire.errors import RpcError

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


def _carry_out(given: str | None, wish: dict[str, Any], shared: str | None, as_json: bool) -> None:
    from dragoman.gateway.lifecycle.restoring import RESTORE

    _, session = settled(given)
    told = ask_about_shared(session, RESTORE, wish, shared)
    if as_json:
        print_json(told)
    else:
        print_files(told)


def settled(given: str | None) -> tuple[Paths, str]:
    """The folders, and the id of the session that is meant."""
    paths, engine = open_engine()
    return paths, resolve(paths, engine, given)


def ask_about_shared(session: str, method: str, wish: dict[str, Any], shared: str | None) -> JsonObject:
    """Send the request to the session's gateway; a person at a terminal is asked about shared changes."""
    from dragoman.wire.errors import RpcError

    paths, loaded = load_settings(quiet=True)
    asked = {name: value for name, value in wish.items() if value is not None}
    if shared is not None:
        asked["shared"] = shared
    try:
        return asyncio.run(_request(session, method, asked, loaded.config, paths))
    except RpcError as error:
        asked["shared"] = ask_shared(error, "undo")
        return asyncio.run(_request(session, method, asked, loaded.config, paths))


def print_json(told: JsonObject) -> None:
    import json

    click.echo(escape_json(json.dumps(told, indent=2, ensure_ascii=False)))


def print_files(restored: JsonObject) -> None:
    for path in restored.get("files", []):
        click.echo(escape(path))
    for path in restored.get("left", []):
        click.echo(f"left as it is: {escape(path)}", err=True)
    if not restored.get("files"):
        click.echo("No file had to be changed.", err=True)


def ask_shared(error: RpcError, act: str) -> str:
    """Ask a person what to do with changes that not only the session made; raises if it is another error."""
    shared = error.data.get("paths") if isinstance(error.data, dict) else None
    if not shared or error.data["reason"] != "shared_changes":
        raise error
    if sys.stdin is None or not sys.stdin.isatty():
        hint = f": --shared include does {act} them too, --shared leave does not"
        raise type(error)(error.code, error.message + hint, error.data) from error
    click.echo("Not only this session changed:", err=True)
    for path in shared[:20]:
        click.echo(f"  {escape(path)}", err=True)
    if len(shared) > 20:
        click.echo(f"  and {len(shared) - 20} more", err=True)
    choice = click.prompt(
        f"{act.capitalize()} these too (include), leave them (leave), or stop",
        type=click.Choice(["include", "leave", "stop"]), default="stop", err=True,
    )  # fmt: skip
    if choice == "stop":
        raise click.Abort
    return str(choice)


async def _request(
    session: str, method: str, wish: dict[str, Any], config: Config, paths: Paths
) -> JsonObject:
    asked: JsonObject = {"sessionId": session, **wish}
    return await request_of(session, method, lambda agent, cwd: asked, config, paths)


async def request_of(
    session: str,
    method: str,
    params: Callable[[str, str], JsonObject],
    config: Config,
    paths: Paths,
    wake: Callable[[str], bool] = lambda agent: False,
) -> JsonObject:
    """Send a request to the session's owner, or to a gateway of this process that takes the session over.

    `params` are made for its agent and folder; `wake` says whether a gateway of this process starts the agent.
    """
    from dragoman.cli.conversation import Conversation
    from dragoman.cli.sessions.find import find, reading
    from dragoman.cli.sessions.state import look

    limit = config.limits.max_message_bytes
    async with reading(paths) as store:
        (view,) = await look(store, [await find(store, session)])
    record = view.record
    asked = params(record.agent, record.cwd)
    if view.address is None:
        return await _inside(record, method, asked, config, paths, wake=wake(record.agent))
    owner = await Conversation.with_owner(view.address, limit)
    try:
        return await owner.result(method, asked)
    finally:
        owner.hang_up()


async def _inside(
    record: SessionRecord, method: str, params: JsonObject, config: Config, paths: Paths, *, wake: bool
) -> JsonObject:
    from dragoman.cli.compose import gateway
    from dragoman.cli.conversation import Conversation
    from dragoman.gateway.access.client import Terms

    async with gateway(config, paths) as running:
        client = await Conversation.inside(running, Terms(start_ahead=False, leave_turns=True))
        meta = {"dragoman": {"wake": wake}}
        setup = {"sessionId": record.id, "cwd": record.cwd, "mcpServers": [], "_meta": meta}
        await client.result("session/resume", setup)
        try:
            return await client.result(method, params)
        finally:
            await client.disconnect()
