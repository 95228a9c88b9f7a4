"""`exec --no-wait` and `prompt`: hand a prompt to the running `dragoman serve`, which goes on without the command."""

from __future__ import annotations

import asyncio

import click

from dragoman.agents.known import find_agent
from dragoman.cli.commands import SETTINGS
from dragoman.cli.exec.run import FAILED, ExecOptions
from dragoman.cli.sessions.find import every, find, reading
from dragoman.cli.settings import load_settings
from dragoman.cli.steering.options import set_options
from dragoman.client import CannotConnect, DragomanError, connect
from dragoman.config.errors import ConfigError
from dragoman.config.model import Config
from dragoman.config.paths import Paths
from dragoman.gateway.ports.store import Store


@click.command(context_settings=SETTINGS)
@click.argument("id")
@click.argument("text")
@click.option("--now", is_flag=True, help="Hand it to the running turn, where the agent can take it.")
@click.pass_context
def prompt(ctx: click.Context, id: str, text: str, now: bool) -> None:
    """Send a message to a session of the running `dragoman serve`, and end without waiting for its answer.

    While a turn runs it waits in the queue if there is one (sessions.queue), and is refused otherwise; with --now it
    becomes part of the running turn of Claude Code and Codex. `exec -s ID` sends a message and waits for the answer.
    """
    if not text.strip():
        raise click.UsageError("the message is empty", ctx)
    paths, loaded = load_settings(quiet=True)
    ctx.exit(hand_over(ExecOptions(text, "", session=id), loaded.config, paths, now=now))


def hand_over(options: ExecOptions, config: Config, paths: Paths, *, now: bool = False) -> int:
    """Print the session's id once `serve` has the prompt; returns the exit code."""
    if options.agent is not None:
        find_agent(config, options.agent)
    try:
        click.echo(asyncio.run(_hand_over(options, paths, now)))
    except CannotConnect as error:
        raise ConfigError(_unreached(error, options, paths)) from error
    except DragomanError as error:
        click.echo(f"dragoman: {error}", err=True)
        return FAILED
    return 0


def _unreached(error: CannotConnect, options: ExecOptions, paths: Paths) -> str:
    there = f" -s {options.session}" if options.session is not None else ""
    instead = f"`dragoman exec{there}`, which waits for the answer, needs none"
    if paths.socket.exists():
        return f"{error}; {instead}"
    return f"this needs a running `dragoman serve`, and none listens on {paths.socket}: start one; {instead}"


async def _hand_over(options: ExecOptions, paths: Paths, now: bool) -> str:
    async with connect("serve") as gateway:
        if options.session is None and not options.last:
            session = await gateway.new(options.agent, options.cwd)
        else:
            async with reading(paths) as store:
                record = await find(
                    store, options.session or await last_in(store, options.cwd, options.agent)
                )
            session = await gateway.resume(record.id, options.cwd if options.cwd_given else record.cwd)
        await set_options(session, options.settings)
        if options.name is not None:
            await session.rename(options.name)
        ended = asyncio.ensure_future(session.send(options.prompt, steer=now, wait=False).ended())
        await session.queue()  # answered after the prompt was taken or refused
        await asyncio.wait({ended}, timeout=0.01)
        if ended.done():
            await ended  # raises what it was refused for
        ended.cancel()
        return session.id


async def last_in(store: Store, cwd: str, agent: str | None) -> str:
    """The id of the session that was used last in a folder; raises `ConfigError` if there is none."""
    async for record in every(store, cwd=cwd, agent=agent):
        return record.id
    whose = f" of the agent {agent}" if agent else ""
    raise ConfigError(f"there is no session{whose} in {cwd} to continue: leave out --continue for a new one")
