"""The command `dragoman fork`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.changes.command import Checked
from dragoman.cli.changes.restore import print_json, settled
from dragoman.cli.changes.rewind import message_named
from dragoman.cli.commands import AS_JSON, SETTINGS
from dragoman.cli.settings import load_settings

if TYPE_CHECKING:
    from dragoman.config.model import Config
    from dragoman.config.paths import Paths
    from dragoman.gateway.json_types import JsonObject


@click.command(cls=Checked, context_settings=SETTINGS)
@click.argument("id", required=False)
@click.option("-a", "--agent", metavar="NAME", help="Agent of the new session.  [default: the same]")
@click.option(
    "--at", metavar="MESSAGE", help="Only what was before this message: its number or its id.  [default: all]"
)
@click.option("--name", metavar="TITLE", help="Title of the new session.  [default: the same]")
@AS_JSON
def fork(id: str | None, agent: str | None, at: str | None, name: str | None, as_json: bool) -> None:
    """Begin a new session with the history of another, also with another agent.

    The original stays as it is. The id of the new session is printed; `dragoman exec -s ID` goes on with it. A session
    in a worktree is forked into a worktree of its own.
    """
    from dragoman.agents.known import find_agent

    paths, session = settled(id)
    _, loaded = load_settings(quiet=True)
    if agent is not None:
        find_agent(loaded.config, agent)
    own = {"agent": agent, "at": message_named(at), "name": name}
    wish = {key: value for key, value in own.items() if value is not None}
    told = asyncio.run(_fork(session, wish, loaded.config, paths))
    if as_json:
        print_json(told)
        return
    click.echo(told["sessionId"])
    made = told["_meta"]["dragoman"].get("worktree")
    if made:
        click.echo(f"worktree {made['name']} in {made['folder']}, branch {made['branch']}", err=True)


async def _fork(session: str, wish: dict[str, Any], config: Config, paths: Paths) -> JsonObject:
    from dragoman.cli.changes.restore import request_of

    def params(agent: str, cwd: str) -> JsonObject:
        own = {**wish, "wake": False}
        return {"sessionId": session, "cwd": cwd, "mcpServers": [], "_meta": {"dragoman": own}}

    return await request_of(
        session, "session/fork", params, config, paths, wake=lambda agent: wish.get("agent", agent) == agent
    )
