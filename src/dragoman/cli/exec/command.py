"""The options of `dragoman exec`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import click

from dragoman.cli.exec.approval import Approve
from dragoman.cli.settings import load_settings


@click.command("exec")
@click.argument("prompt", required=False)
@click.argument("piped", required=False, type=click.Choice(["-"]), metavar="[-]")
@click.option("-a", "--agent", metavar="NAME", help="Agent to use.  [default: as configured]")
@click.option(
    "-s", "--session", metavar="ID", help="Continue this session; the beginning of its id is enough."
)
@click.option("-c", "--continue", "last", is_flag=True, help="Continue the last session in this folder.")
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
@click.option("--model", metavar="MODEL", help="Model to use: one that the agent offers.")
@click.option("--mode", metavar="MODE", help="Mode to use: one that the agent offers.")
@click.option(
    "--option", "settings", multiple=True, metavar="NAME=VALUE", help="Set another option of the agent."
)
@click.option(
    "--no-wait", is_flag=True, help="Hand it to the running `dragoman serve` and print the session's id."
)
@click.option("--sandbox", metavar="NAME", help="Run the agent in this sandbox.")
@click.option(
    "--worktree", is_flag=True, help="Work in a git worktree of its own, on a branch dragoman/NAME."
)
@click.option("--name", metavar="NAME", help="Title of the session, and name of its worktree.")
@click.option("--setup", is_flag=True, help="Approve the commands of worktrees.setup.")
@click.option("-C", "--cwd", metavar="DIR", help="The folder to work in. [default: the current one]")
@click.pass_context
def exec_(
    ctx: click.Context,
    /,
    prompt: str | None,
    piped: str | None,
    agent: str | None,
    session: str | None,
    last: bool,
    file: BinaryIO | None,
    as_json: bool,
    quiet: bool,
    approve: Approve | None,
    timeout: float | None,
    model: str | None,
    mode: str | None,
    settings: tuple[str, ...],
    no_wait: bool,
    sandbox: str | None,
    cwd: str | None,
    worktree: bool,
    name: str | None,
    setup: bool,
) -> None:
    """Send one prompt to an agent and print its answer.

    PROMPT may be - or left out: then it is read from stdin. A - behind PROMPT puts what is read from stdin below it.
    The answer goes to stdout, everything else to stderr.

    Exit codes: 0 done, 1 the agent failed, 2 bad usage, 3 the agent refused, 124 time limit, 130 cancelled.
    """
    if as_json and quiet:
        raise click.UsageError("give either --json or --quiet", ctx)
    if setup and not worktree:
        raise click.UsageError("--setup needs --worktree", ctx)
    if last and session is not None:
        raise click.UsageError("give either --continue or --session", ctx)
    if worktree and (session is not None or last):
        raise click.UsageError("--worktree is for a new session: leave out --session and --continue", ctx)
    if no_wait and (as_json or quiet or approve or timeout or sandbox or worktree):
        raise click.UsageError(
            "--no-wait goes with -a, -s, -c, --model, --mode, --option, --name and --cwd only", ctx
        )
    chosen = [*_pairs(ctx, settings), *_named(model=model, mode=mode)]
    text = _prompt(ctx, prompt, file, piped=piped is not None)
    folder = _folder(ctx, cwd)
    from dragoman.cli.exec import run
    from dragoman.cli.exec.output import Ndjson, Plain, Quiet
    from dragoman.gateway.ports.worktrees import WorktreeWish

    paths, loaded = load_settings(quiet=True)
    if session is None and not last and sandbox is None:
        from dragoman.cli.agents.offer import offer_agent

        if offer_agent(agent, folder, paths, loaded):
            paths, loaded = load_settings(quiet=True)
    options = run.ExecOptions(
        prompt=text,
        cwd=folder,
        cwd_given=cwd is not None,
        agent=agent,
        session=session,
        last=last,
        name=name,
        settings=tuple(chosen),
        approve=approve,
        timeout=timeout,
        sandbox=sandbox,
        worktree=WorktreeWish(name, text, setup) if worktree else None,
    )
    if no_wait:
        from dragoman.cli.exec.hand_over import hand_over

        ctx.exit(hand_over(options, loaded.config, paths))
    output = Ndjson if as_json else Quiet if quiet else Plain
    ctx.exit(run.run(options, loaded.config, paths, output))


def _pairs(ctx: click.Context, settings: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not name or not equals:
            raise click.UsageError(f'--option takes NAME=VALUE, not "{setting}"', ctx)
        yield name, value


def _named(**settings: str | None) -> Iterator[tuple[str, str]]:
    return ((name, value) for name, value in settings.items() if value is not None)


def _prompt(ctx: click.Context, prompt: str | None, file: BinaryIO | None, *, piped: bool) -> str:
    if prompt is not None and file is not None:
        raise click.UsageError("give either PROMPT or --file", ctx)
    if file is not None:
        text = _read(ctx, file, str(file.name))
    elif prompt not in (None, "-"):
        text = str(prompt)
        if piped and sys.stdin is not None:
            text += f"\n\n{_read(ctx, sys.stdin.buffer, 'stdin')}"
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
