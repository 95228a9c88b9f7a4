"""The options of `dragoman exec`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import BinaryIO

import click

from dragoman.cli.exec.approval import Approve
from dragoman.cli.settings import load_settings


@click.command("exec")
@click.argument("prompt", required=False)
@click.option("-a", "--agent", metavar="NAME", help="Agent to use.  [default: as configured]")
@click.option(
    "-s", "--session", metavar="ID", help="Continue this session; the beginning of its id is enough."
)
@click.option("-f", "--file", type=click.File("rb"), help="Read the prompt from a file.")
@click.option("--json", "as_json", is_flag=True, help="Print every message as a line of JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Print the agent's last message and nothing else.")
@click.option(
    "--approve",
    type=click.Choice(["all", "reads", "none"]),
    help="What the agent may do without asking. [default: ask on a terminal, else none]",
)
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Cancel after SECONDS."
)
@click.option("--sandbox", metavar="NAME", help="Run the agent in this sandbox.")
@click.option(
    "--worktree", is_flag=True, help="Work in a git worktree of its own, on a branch dragoman/NAME."
)
@click.option(
    "--name", metavar="NAME", help="Name of the worktree; needs --worktree.  [default: from the prompt]"
)
@click.option("--setup", is_flag=True, help="Approve the commands of worktrees.setup.")
@click.option("-C", "--cwd", metavar="DIR", help="The folder to work in. [default: the current one]")
@click.pass_context
def exec_(
    ctx: click.Context,
    /,
    prompt: str | None,
    agent: str | None,
    session: str | None,
    file: BinaryIO | None,
    as_json: bool,
    quiet: bool,
    approve: Approve | None,
    timeout: float | None,
    sandbox: str | None,
    cwd: str | None,
    worktree: bool,
    name: str | None,
    setup: bool,
) -> None:
    """Send one prompt to an agent and print its answer.

    PROMPT may be - or left out: then it is read from stdin. The answer goes to stdout, everything else to stderr.

    Exit codes: 0 done, 1 the agent failed, 2 bad usage, 3 the agent refused, 124 time limit, 130 cancelled.
    """
    if as_json and quiet:
        raise click.UsageError("give either --json or --quiet", ctx)
    if not worktree and (name is not None or setup):
        raise click.UsageError("--name and --setup need --worktree", ctx)
    if worktree and session is not None:
        raise click.UsageError("--worktree is for a new session: leave out --session", ctx)
    text = _prompt(ctx, prompt, file)
    folder = _folder(ctx, cwd)
    from dragoman.cli.exec import run
    from dragoman.cli.exec.output import Ndjson, Plain, Quiet
    from dragoman.gateway.ports.worktrees import WorktreeWish

    paths, loaded = load_settings(quiet=True)
    options = run.ExecOptions(
        prompt=text,
        cwd=folder,
        cwd_given=cwd is not None,
        agent=agent,
        session=session,
        approve=approve,
        timeout=timeout,
        sandbox=sandbox,
        worktree=WorktreeWish(name, text, setup) if worktree else None,
    )
    output = Ndjson if as_json else Quiet if quiet else Plain
    ctx.exit(run.run(options, loaded.config, paths, output))


def _prompt(ctx: click.Context, prompt: str | None, file: BinaryIO | None) -> str:
    if prompt is not None and file is not None:
        raise click.UsageError("give either PROMPT or --file", ctx)
    if file is not None:
        text = _read(ctx, file, str(file.name))
    elif prompt not in (None, "-"):
        text = str(prompt)
    elif sys.stdin is None or (prompt is None and sys.stdin.isatty()):
        raise click.UsageError("there is no prompt: give PROMPT or --file, or pipe it to stdin", ctx)
    else:
        text = _read(ctx, sys.stdin.buffer, "stdin")
    if not text.strip():
        raise click.UsageError("the prompt is empty", ctx)
    return text


def _read(ctx: click.Context, source: BinaryIO, name: str) -> str:
    try:
        return source.read().decode()
    except UnicodeDecodeError as error:
        raise click.UsageError(
            f"the prompt from {name} is not UTF-8 text (byte {error.start})", ctx
        ) from error
    except OSError as error:
        raise click.UsageError(f"the prompt cannot be read from {name}: {error.strerror}", ctx) from error


def _folder(ctx: click.Context, cwd: str | None) -> str:
    try:
        folder = Path(os.path.abspath(cwd or "."))  # noqa: PTH100 (not resolved: the path as the user knows it)
    except FileNotFoundError as error:
        raise click.UsageError("the current folder does not exist any more: give --cwd", ctx) from error
    if not folder.is_dir():
        raise click.UsageError(f"--cwd: {folder} is not a folder", ctx)
    return str(folder)
