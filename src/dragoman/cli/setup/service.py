"""`dragoman service`: run `dragoman serve` as a service of the user."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from dragoman.cli.commands import AS_JSON, SETTINGS, WholeLines
from dragoman.cli.entry import complain
from dragoman.cli.setup.consent import NOT_DONE, YES, agreed, diff_of, make, reported, show_diff
from dragoman.config.errors import ConfigError
from dragoman.edited_file import Change, EditError, read_file
from dragoman.installed import NotInstalled, SearchPath, program, search_path
from dragoman.system_service.definition import Definition, Manager

NOT_RUNNING, NOT_INSTALLED = 3, 4
"""Exit codes of `status`, as those of systemctl."""
COMMAND_SECONDS = 120


@click.group(cls=WholeLines, context_settings=SETTINGS)
def service() -> None:
    """Run `dragoman serve` as a service of yours: systemd, or launchd on macOS."""


@service.command()
@click.option("--print", "only_print", is_flag=True, help="Print the unit and change nothing.")
@click.option("--no-start", is_flag=True, help="Write the unit, but do not start it.")
@click.option("--program", "program_", metavar="PATH", help="Program to start.  [default: this one]")
@YES
@AS_JSON
@click.pass_context
def install(
    ctx: click.Context, only_print: bool, no_start: bool, program_: str | None, yes: bool, as_json: bool
) -> None:
    """Write the unit, start it now and at each login: shows what it does and asks.

    The unit has the absolute path of the program and the present PATH, on which agents are found. Exits with 3 if
    nobody agreed.
    """
    manager, folders = _manager(), search_path()
    unit = manager.render(_definition(program_, folders))
    if only_print:
        click.echo(unit.decode(), nl=False)
        return
    if not no_start:
        _need(manager)
    with reported():
        change = Change(manager.file, read_file(manager.file), unit)
    runs = no_start or manager.status().runs
    commands = [] if no_start or (not change.is_needed and runs) else manager.start_commands()
    if not as_json:
        click.echo(f"PATH of the agents: {folders}", err=True)
        for folder, reason in folders.left_out:
            click.echo(f"  left out: {folder or 'an empty entry'} ({reason})", err=True)
    ctx.exit(_carry_out(manager, [], [change], commands, yes=yes, as_json=as_json, done="installed"))


@service.command()
@YES
@AS_JSON
@click.pass_context
def remove(ctx: click.Context, yes: bool, as_json: bool) -> None:
    """Stop the service and delete its unit; sessions and settings stay."""
    manager = _manager()
    with reported():
        content = read_file(manager.file)
    if content is not None and not manager.is_ours(content):
        complain(
            f"{manager.file} was not written by `dragoman service install`, so it was left alone: remove it by hand"
        )
        ctx.exit(1)
    change = Change(manager.file, content, None, keep=False)
    before, after = manager.stop_commands(), manager.forget_commands()
    if content is None or manager.unavailable():
        before, after = [], []
    ctx.exit(_carry_out(manager, before, [change], after, yes=yes, as_json=as_json, done="removed"))


@service.command()
@AS_JSON
@click.pass_context
def status(ctx: click.Context, as_json: bool) -> None:
    """Say whether the service is installed and runs; exits with 0, 3 (it does not run) or 4 (not installed)."""
    manager = _manager()
    with reported():
        content = read_file(manager.file)
    named = manager.program_in(content) if content is not None else None
    problem = manager.unavailable()
    found = manager.status() if not problem else None
    facts: dict[str, Any] = {
        "manager": manager.name,
        "file": str(manager.file),
        "installed": content is not None,
        "program": named,
        "active": found.active if found is not None else problem,
        "enabled": found.enabled if found is not None else "unknown",
    }
    if as_json:
        click.echo(json.dumps(facts, indent=2, ensure_ascii=False))
    elif content is None:
        click.echo(f"Not installed: there is no {manager.file}. `dragoman service install` writes it.")
    else:
        click.echo(f"{manager.file}: {facts['active']}, {facts['enabled']}")
        if named is not None and not os.access(named, os.X_OK):
            click.echo(f"Its program {named} does not exist: run `dragoman service install` again.")
        for hint in ["Address with the token: dragoman serve --url", *manager.hints()]:
            click.echo(hint)
    if content is None:
        ctx.exit(NOT_INSTALLED)
    ctx.exit(0 if found is not None and found.runs else NOT_RUNNING)


def _manager() -> Manager:
    from dragoman.editors.editor import Machine
    from dragoman.system_service import launchd, systemd

    machine = Machine.this(os.environ)
    path = os.environ.get("PATH")
    if sys.platform == "darwin":
        return launchd.find(machine.home, path)
    return systemd.find(machine.config, path)


def _definition(given: str | None, folders: SearchPath) -> Definition:
    try:
        chosen = program() if given is None else Path(given).expanduser().absolute()
    except NotInstalled as error:
        raise ConfigError(str(error)) from error
    if not os.access(chosen, os.X_OK) or not str(chosen).isprintable():
        raise ConfigError(f"{chosen} is not a program: give another one with --program")
    if set(str(chosen)) & set("\"'\\"):  # systemd refuses them however they are quoted
        raise ConfigError(
            f"{chosen} has quotes or backslashes in its path: give another program with --program"
        )
    return Definition(chosen, str(folders), os.environ)


def _need(manager: Manager) -> None:
    problem = manager.unavailable()
    if problem:
        raise ConfigError(
            f"no service can be started here: {problem}. `dragoman service install --print` shows the unit for another "
            "service manager, --no-start writes it, and `dragoman serve` runs without any"
        )


def _carry_out(
    manager: Manager,
    before: Sequence[Sequence[str]],
    changes: Sequence[Change],
    after: Sequence[Sequence[str]],
    *,
    yes: bool,
    as_json: bool,
    done: str,
) -> int:
    """Show the change and the commands, ask, and do it; returns the exit code."""
    needed = [change for change in changes if change.is_needed]
    commands = [shlex.join(command) for command in (*before, *after)]
    result = {
        "state": done if needed or commands else "already",
        "file": str(manager.file),
        "diff": diff_of(needed),
        "commands": commands,
    }
    code = 0
    if needed or commands:
        if not as_json:
            show_diff(needed)
            for command in commands:
                click.echo(f"runs: {command}", err=True)
        if not agreed("Do this?", yes):
            code, result["state"] = NOT_DONE, "not changed"
        else:
            with reported():
                _run(before)
                make(needed)
                _run(after)
    if as_json:
        click.echo(json.dumps(result, indent=2, ensure_ascii=False))
    elif result["state"] == "already":
        click.echo(f"{manager.file}: already so, nothing was changed.")
    elif code == 0:
        click.echo(f"{manager.file}: {done}.")
        for hint in manager.hints() if done == "installed" else ():
            click.echo(hint)
    return code


def _run(commands: Sequence[Sequence[str]]) -> None:
    for command in commands:
        try:
            ran = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=COMMAND_SECONDS,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise EditError(f"`{shlex.join(command)}` failed: {error}") from error
        if ran.returncode != 0:
            said = ran.stderr.strip() or ran.stdout.strip() or f"exit code {ran.returncode}"
            raise EditError(
                f"`{shlex.join(command)}` failed: {said}. `dragoman service status` shows where it stands"
            )
