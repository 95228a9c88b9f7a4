"""The options of `dragoman serve`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from dragoman.cli.log_options import log_flags, log_options
from dragoman.cli.settings import load_settings
from dragoman.config.load import flag


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Command line options that are not configuration keys."""

    agent: str | None = None
    open: bool = False
    insecure: bool = False


@click.command()
@click.option("--host", metavar="ADDRESS", help="The address to listen on.  [default: 127.0.0.1]")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="The port to listen on; 0 takes a free one.  [default: 8420]",
)
@click.option("--agent", metavar="NAME", help="Agent of all sessions that are created at /acp.")
@click.option("--open", "open_", is_flag=True, help="Open the web page in a browser.")
@click.option("--url", is_flag=True, help="Print the URL of the running server, with its token, and exit.")
@click.option("--insecure", is_flag=True, help="Let other machines connect without TLS.")
@log_options
@click.pass_context
def serve(
    ctx: click.Context,
    /,
    host: str | None,
    port: int | None,
    agent: str | None,
    open_: bool,
    url: bool,
    insecure: bool,
    **log: Any,
) -> None:
    """Run the gateway for browsers, remote editors and programs.

    Prints one line: the address, with the token that lets its reader in; --url prints it again later.
    """
    given = {"host": host, "port": port}
    flags = [flag(f"--{key}", ("serve", key), value) for key, value in given.items() if value is not None]
    paths, loaded = load_settings([*flags, *log_flags(**log)])
    if url:
        from dragoman.cli.serve.run import print_url

        print_url(loaded.config, paths)
        return
    if agent is not None:
        from dragoman.agents.known import find_agent

        find_agent(loaded.config, agent)
    from dragoman.cli.serve.run import run

    ctx.exit(run(ServeOptions(agent, open_, insecure), loaded.config, paths))
