"""The options of `dragoman chat`."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import click

from dragoman.config.errors import ConfigError
from dragoman.config.paths import find_paths


@click.command("chat")
@click.argument("agent", required=False)
@click.option("-c", "--continue", "last", is_flag=True, help="Continue the last session of this folder.")
@click.option("-r", "--resume", "pick", is_flag=True, help="Choose one of this folder's sessions.")
@click.option(
    "-s", "--session", metavar="ID", help="Continue this session; the beginning of its id is enough."
)
@click.option("-C", "--cwd", metavar="DIR", help="The folder to work in.  [default: the current one]")
@click.option("--read-only", is_flag=True, help="With -s: show the session without taking part in it.")
@click.pass_context
def chat(
    ctx: click.Context,
    agent: str | None,
    last: bool,
    pick: bool,
    session: str | None,
    cwd: str | None,
    read_only: bool,
) -> None:
    """Talk to an agent in the terminal.

    Uses a running `dragoman serve`, where the session lives on when you leave, else a gateway of its own.
    """
    if sum((last, pick, session is not None)) > 1:
        raise click.UsageError("give one of --continue, --resume and --session", ctx)
    if agent is not None and (last or pick or session is not None):
        raise click.UsageError("AGENT is for a new session: leave it out", ctx)
    if read_only and session is None:
        raise click.UsageError("--read-only needs a session: give --session ID", ctx)
    if not is_terminal():
        raise click.UsageError("chat needs a terminal; `dragoman exec` works without one", ctx)
    folder = Path(os.path.abspath(cwd or "."))  # noqa: PTH100 (not resolved: the path as the user knows it)
    if not folder.is_dir():
        raise click.UsageError(f"--cwd: {folder} is not a folder", ctx)
    if not last and not pick and session is None:
        _offer(agent, folder)
    from dragoman.cli.chat.run import run, watch

    if read_only and session is not None:
        ctx.exit(watch(session, find_paths()))
    ctx.exit(run(folder, find_paths(), agent=agent, last=last, pick=pick, session=session))


def _offer(agent: str | None, folder: Path) -> None:
    """Offer an agent that is not installed; a running `serve` needs a moment to have it."""
    from dragoman.agents.configured import LOOK_SECONDS
    from dragoman.agents.known import known_layer
    from dragoman.cli.agents.offer import offer_agent
    from dragoman.cli.settings import here
    from dragoman.config.load import load

    paths = find_paths()
    try:
        loaded = load(paths, known=known_layer(), workspace=here())
    except ConfigError:
        return  # the gateway of the chat reports it
    if offer_agent(agent, str(folder), paths, loaded):
        time.sleep(LOOK_SECONDS)


def is_terminal() -> bool:
    """Whether a chat can be shown and typed in."""
    if os.environ.get("TERM") == "dumb":
        return False
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
