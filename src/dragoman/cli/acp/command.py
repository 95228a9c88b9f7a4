"""The options of `dragoman acp`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from dragoman.cli.acp.start import AcpOptions, start
from dragoman.cli.log_options import log_flags, log_options

if TYPE_CHECKING:
    from dragoman.gateway.ports.worktrees import WorktreeWish


@click.command()
@click.argument("agent", required=False)
@click.option("--stdio", is_flag=True, help="Use stdin and stdout (the default).")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="Listen on TCP instead of stdio; 0 takes a free port.",
)
@click.option("--host", help="The address to listen on; needs --port.  [default: 127.0.0.1]")
@click.option(
    "--token",
    envvar="DRAGOMAN_TOKEN",
    help="Token that TCP clients must send in initialize; better given as DRAGOMAN_TOKEN.",
)
@click.option(
    "--connect",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Use a running `dragoman serve`.",
)
@click.option("--sandbox", metavar="NAME", help="Run the agents in this sandbox.")
@click.option("--worktree", is_flag=True, help="Give each new session a git worktree of its own.")
@click.option("--name", metavar="NAME", help="Name of these worktrees; needs --worktree.")
@click.option("--setup", is_flag=True, help="Approve the commands of worktrees.setup.")
@log_options
@click.pass_context
def acp(
    ctx: click.Context,
    /,
    agent: str | None,
    stdio: bool,
    host: str | None,
    port: int | None,
    token: str | None,
    connect: Literal["auto", "always", "never"],
    sandbox: str | None,
    worktree: bool,
    name: str | None,
    setup: bool,
    **log: Any,
) -> None:
    """Speak the Agent Client Protocol on stdin and stdout, for editors.

    AGENT fixes the agent for all sessions; without it each session picks its own.
    """
    if stdio and port is not None:
        raise click.UsageError("--stdio and --port cannot be combined: choose one of them", ctx)
    if host is not None and port is None:
        raise click.UsageError("--host needs --port", ctx)
    from dragoman.cli.listening import is_loopback

    if host is not None and not token and not is_loopback(host):
        raise click.UsageError(f"--host {host} is open to other machines: it needs --token", ctx)
    if token == "":
        raise click.UsageError("--token is empty", ctx)
    if not worktree and (name is not None or setup):
        raise click.UsageError("--name and --setup need --worktree", ctx)
    options = AcpOptions(
        agent=agent,
        host=host,
        port=port,
        token=token,
        connect=connect,
        sandbox=sandbox,
        worktree=_wish(ctx, name, setup) if worktree else None,
    )
    ctx.exit(start(options, log_flags(**log)))


def _wish(ctx: click.Context, name: str | None, setup: bool) -> WorktreeWish:
    """One name for several sessions: those after the first get a number behind it."""
    from dragoman.gateway.ports.worktrees import WorktreeError, WorktreeWish
    from dragoman.worktrees.names import check_name

    try:
        return WorktreeWish(title=check_name(name) if name is not None else "", setup=setup)
    except WorktreeError as error:
        raise click.UsageError(f"--name: {error}", ctx) from error
